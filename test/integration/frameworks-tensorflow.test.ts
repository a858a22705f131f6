import { describe, expect, it } from "vitest";
import { outputsOf } from "../helpers/framework-models.ts";
import {
  bfloatCase,
  copyModel,
  frameworkCases,
  FrameworkServing,
  togetherCase,
} from "../helpers/framework-serving.ts";

const parameter = (key: string, value: string): string =>
  `parameters { key: "${key}" value { string_value: "${value}" } }`;
const vectors = `max_batch_size: 8
  input [{ name: "x" data_type: TYPE_FP32 dims: [ 4 ] }]`;

const copies: Readonly<Record<string, readonly [from: string, config: string]>> = {
  doubling: ["signatures", parameter("TF_SIGNATURE_DEF", "doubling")],
  unsigned: ["signatures", parameter("TF_SIGNATURE_DEF", "absent")],
  elsewhere: ["graph", `${vectors} output [{ name: "z" data_type: TYPE_FP32 dims: [ 3 ] }]`],
};

const serving = new FrameworkServing("tensorflow", {
  loaded: ["image_classifier", "graph", "shouter", "doubling", "halves"],
  write(models, { environment }) {
    const own = parameter("EXECUTION_ENV_PATH", environment);
    const write = (name: string, config: string): void =>
      models.write(`${name}/config.pbtxt`, `${own} ${config}`);
    write(
      "image_classifier",
      `platform: "tensorflow_savedmodel"
     max_batch_size: 8
     input [{ name: "input_image" data_type: TYPE_FP32 dims: [ 224, 224, 3 ] }]
     output [{ name: "predictions" data_type: TYPE_FP32 dims: [ 1000 ] }]
     dynamic_batching { max_queue_delay_microseconds: 500000 preferred_batch_size: [ 8 ] }
     ${parameter("TF_NUM_INTRA_THREADS", "1")}`,
    );
    write(
      "graph",
      `platform: "tensorflow_graphdef" ${vectors} output [{ name: "y" data_type: TYPE_FP32 dims: [ 3 ] }]`,
    );
    for (const name of ["shouter", "halves"]) write(name, "");
    for (const [name, [from, config]] of Object.entries(copies)) {
      copyModel(models, from, name, `${own} ${config}`);
    }
    models.write("broken/1/model.savedmodel/saved_model.pb", "no message");
    write("broken", "");
    return [];
  },
});

describe("a model of TensorFlow", { timeout: 120_000 }, () => {
  frameworkCases(serving, "TensorFlow cannot read 'model.savedmodel'");
  bfloatCase(serving, "bfloat", "twice");

  it.for(["image_classifier", "graph"])("answers as numpy does: %s", async (model) => {
    expect(await serving.difference(model)).toBeLessThan(1e-5);
  });

  it("completes its config by the signature of a SavedModel, with the environment that it names", async () => {
    const { text } = await serving.http.get("/v2/models/shouter/config");
    expect(JSON.parse(text)).toMatchObject({
      backend: "tensorflow",
      platform: "tensorflow_savedmodel",
      max_batch_size: 4,
      input: [{ name: "words", data_type: "TYPE_STRING", dims: [2] }],
      output: [
        { name: "lengths", data_type: "TYPE_INT32", dims: [2] },
        { name: "shouted", data_type: "TYPE_STRING", dims: [2] },
      ],
      dynamic_batching: { preferred_batch_size: [4] },
    });
  });

  it("takes and gives strings", async () => {
    const input = { name: "words", datatype: "BYTES", shape: [1, 2], data: ["tide", "pool"] };
    const answer = await serving.http.infer("shouter", { inputs: [input] });
    expect(outputsOf(answer)).toMatchObject([
      { name: "lengths", data: [4, 4] },
      { name: "shouted", data: ["TIDE", "POOL"] },
    ]);
  });

  it("is run by the signature that its config names", async () => {
    const input = { name: "x", datatype: "FP32", shape: [3], data: [1, 2, 3] };
    const answer = await serving.http.infer("doubling", { inputs: [input] });
    expect(outputsOf(answer)).toMatchObject([{ name: "y", shape: [3], data: [2, 4, 6] }]);
  });

  togetherCase(serving, "image_classifier", { name: "input_image", shape: [224, 224, 3] }, "0.001");

  it("is refused when it does not have the signature that its config names", async () => {
    expect(await serving.refusal("unsigned")).toContain(
      "has no signature 'absent' (TF_SIGNATURE_DEF), its signatures are: doubling, serving_default",
    );
  });

  it("is refused when a GraphDef does not have a tensor of its config", async () => {
    expect(await serving.refusal("elsewhere")).toContain("'model.graphdef' has no tensor 'z'");
  });
});
