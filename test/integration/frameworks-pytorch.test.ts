import { describe, expect, it } from "vitest";
import { outputsOf } from "../helpers/framework-models.ts";
import {
  copyModel,
  frameworkCases,
  FrameworkServing,
  togetherCase,
} from "../helpers/framework-serving.ts";
import { binaryInfer, errorOf } from "../helpers/http-client.ts";

const tensor = (name: string, type: string, dims: string): string =>
  `{ name: "${name}" data_type: TYPE_${type} dims: [ ${dims} ] }`;
const classifier = `
  input [${tensor("input__0", "FP32", "3, 224, 224")}] output [${tensor("output__0", "FP32", "5")}]`;
const both = `max_batch_size: 8
  input [${tensor("x", "FP32", "3")}, ${tensor("y", "FP32", "3")}]`;

const configs: Readonly<Record<string, string>> = {
  classifier: `max_batch_size: 8 ${classifier}
    dynamic_batching { max_queue_delay_microseconds: 500000 preferred_batch_size: [ 8 ] }
    parameters { key: "INFERENCE_MODE" value { string_value: "true" } }
    parameters { key: "DISABLE_OPTIMIZED_EXECUTION" value { string_value: "true" } }
    parameters { key: "INTRA_OP_THREAD_COUNT" value { string_value: "1" } }`,
  text_embedder: `max_batch_size: 8
    input [${tensor("attention_mask", "INT64", "-1")}, ${tensor("input_ids", "INT64", "-1")}]
    output [${tensor("embeddings", "FP32", "2")}]`,
  dictionary: `${both} output [${tensor("difference", "FP32", "3")}, ${tensor("sum", "FP32", "3")}]`,
  listed: `${both} output [${tensor("sum", "FP32", "3")}, ${tensor("difference", "FP32", "3")}]`,
  halves: `input [${tensor("INPUT__1", "BF16", "2")}, ${tensor("INPUT__0", "FP16", "2")}]
    output [${tensor("OUTPUT__1", "BF16", "2")}, ${tensor("OUTPUT__0", "FP16", "2")}]`,
  shout: `max_batch_size: 8
    input [{ name: "words" data_type: TYPE_STRING dims: [ 1 ] reshape { shape: [ ] } }]
    output [{ name: "shouted" data_type: TYPE_STRING dims: [ 1 ] reshape { shape: [ ] } }]`,
  doubles: `input [${tensor("x", "FP32", "2")}] output [${tensor("y", "FP32", "2")}]`,
  first: `max_batch_size: 8 input [${tensor("x", "FP32", "2")}] output [${tensor("y", "FP32", "2")}]`,
};

const config = (more: string): string => `platform: "pytorch_libtorch" ${more}`;

const serving = new FrameworkServing("pytorch", {
  loaded: [...Object.keys(configs), "misplaced"],
  write(models, { python }) {
    for (const [name, more] of Object.entries(configs))
      models.write(`${name}/config.pbtxt`, config(more));
    models.write("broken/1/model.pt", "no archive");
    models.write("broken/config.pbtxt", config(`max_batch_size: 8 ${classifier}`));
    const copies: Readonly<Record<string, string>> = {
      unnamed: "",
      lonely: `${both.replace(/, \{.*/u, "]")} output [${tensor("sum", "FP32", "3")}]`,
      misplaced: `${both} output [${tensor("output__7", "FP32", "3")}]`,
      unsure: `${both} output [${tensor("sum", "FP32", "3")}]
      parameters { key: "INFERENCE_MODE" value { string_value: "perhaps" } }`,
    };
    for (const [name, more] of Object.entries(copies)) {
      copyModel(models, "dictionary", name, config(more));
    }
    return [`--python=${python}`];
  },
});

const pair = (name: string): object => ({
  name,
  datatype: "FP32",
  shape: [2, 2],
  data: [1, 2, 3, 4],
});

describe("a TorchScript model", { timeout: 60_000 }, () => {
  frameworkCases(serving, "'model.pt' is no TorchScript that PyTorch");

  it("answers as numpy does, with input__0 and output__0", async () => {
    expect(await serving.difference("classifier")).toBeLessThan(1e-5);
  });

  it("is given inputs by the names of forward's arguments, in whatever order the config has them", async () => {
    expect(await serving.difference("text_embedder", "INT64")).toBeLessThan(1e-5);
  });

  it.for(["dictionary", "listed"])("may return more than a tensor: a %s", async (model) => {
    expect(await serving.difference(model)).toBeLessThan(1e-5);
  });

  it("takes and gives FP16 and BF16, and INPUT__1 is the second argument", async () => {
    const binary = { parameters: { binary_data_size: 4 } };
    const inputs = [
      { name: "INPUT__0", datatype: "FP16", shape: [2], ...binary },
      { name: "INPUT__1", datatype: "BF16", shape: [2], ...binary },
    ];
    const outputs = ["OUTPUT__0", "OUTPUT__1"].map((name) => ({
      name,
      parameters: { binary_data: true },
    }));
    // 1.5 and -2, in the one type and in the other.
    const given = Uint8Array.of(0x00, 0x3e, 0x00, 0xc0, 0xc0, 0x3f, 0x00, 0xc0);
    const answer = await serving.http.infer("halves", ...binaryInfer({ inputs, outputs }, given));
    // 3 and -4, in the order of the config.
    const twice = [0x40, 0x40, 0x80, 0xc0, 0x00, 0x42, 0x00, 0xc4];
    expect([...answer.bytes.subarray(-8)]).toEqual(twice);
  });

  it("takes and gives strings as lists", async () => {
    const input = { name: "words", datatype: "BYTES", shape: [2, 1], data: ["tide", "flüt"] };
    const answer = await serving.http.infer("shout", { inputs: [input] });
    expect(outputsOf(answer)).toMatchObject([{ shape: [2, 1], data: ["TIDE", "FLüT"] }]);
  });

  togetherCase(serving, "classifier", { name: "input__0", shape: [3, 224, 224] }, "0.2");

  it("fails with both datatypes when an output has another one than its config says", async () => {
    const answer = await serving.http.infer("doubles", {
      inputs: [{ name: "x", datatype: "FP32", shape: [2], data: [1, 2] }],
    });
    expect(answer.status).toBe(500);
    expect(errorOf(answer)).toContain(
      "configuration expects datatype TYPE_FP32 for output 'y', model provides TYPE_FP64",
    );
  });

  it("fails when it does not answer for the whole batch", async () => {
    const answer = await serving.http.infer("first", { inputs: [pair("x")] });
    expect(errorOf(answer)).toContain(
      "output 'y' has the shape [1, 2], expected its first dimension to be the batch of 2",
    );
  });

  it("fails with TorchScript's own reason, and answers the next request", async () => {
    const ids = { name: "input_ids", datatype: "INT64", shape: [1, 3], data: [1, 2, 3] };
    const mask = { name: "attention_mask", datatype: "INT64", shape: [1, 2], data: [1, 1] };
    const answer = await serving.http.infer("text_embedder", { inputs: [ids, mask] });
    expect(errorOf(answer)).toMatch(/PyTorch execute failure: .*size of tensor/su);
    expect(errorOf(answer)).not.toContain(serving.modelsPath);
    expect(await serving.difference("text_embedder", "INT64")).toBeLessThan(1e-5);
  });

  it("fails when an output's index is more than it returns", async () => {
    const inputs = ["x", "y"].map((name) => ({
      name,
      datatype: "FP32",
      shape: [1, 3],
      data: [1, 2, 3],
    }));
    const answer = await serving.http.infer("misplaced", { inputs });
    expect(errorOf(answer)).toContain(
      "output 'output__7' refers to an output index which doesn't exist",
    );
  });

  it("is refused when its config leaves the tensors out, which its file does not tell", async () => {
    expect(await serving.refusal("unnamed")).toContain(
      "model configuration must contain at least one input",
    );
  });

  it("is refused when it needs more inputs than its config has", async () => {
    expect(await serving.refusal("lonely")).toContain(
      "configuration expects 1 inputs, model provides 2",
    );
  });

  it("is refused when a parameter has no meaning", async () => {
    expect(await serving.refusal("unsure")).toContain(
      "parameter 'INFERENCE_MODE': given 'perhaps', expected 'true' or 'false'",
    );
  });
});
