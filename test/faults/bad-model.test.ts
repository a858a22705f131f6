import { describe, expect, it } from "vitest";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { errorOf } from "../helpers/http-client.ts";
import type { Answer } from "../helpers/http-client.ts";
import { onnxModel } from "../helpers/onnx-model.ts";
import { serving } from "../helpers/serving.ts";

const x = { name: "x", datatype: "FP32", shape: [1] } as const;
const good = addingModel(1);

/** A graph with so many bytes of weights. */
function heavyModel(bytes: number): Uint8Array {
  const weights = { name: "weights", datatype: "FP32", shape: [bytes / 4] } as const;
  return onnxModel({
    inputs: [x],
    outputs: [{ ...weights, name: "y" }],
    nodes: [{ op: "Add", inputs: ["x", "weights"], outputs: ["y"] }],
    initializers: [{ ...weights, bytes: new Uint8Array(bytes) }],
  });
}

/** A graph whose one constant has a shape that its bytes do not fill. */
function shortConstant(shape: readonly number[]): Uint8Array {
  return onnxModel({
    inputs: [x],
    outputs: [{ ...x, name: "y" }],
    nodes: [{ op: "Add", inputs: ["x", "c"], outputs: ["y"] }],
    initializers: [{ name: "c", datatype: "FP32", shape, bytes: new Uint8Array(4) }],
  });
}

const badFiles: readonly (readonly [name: string, file: Uint8Array, reason: RegExp])[] = [
  ["empty", new Uint8Array(), /./u],
  ["text", Buffer.from("this is no model"), /./u],
  ["half", good.subarray(0, good.length / 2), /./u],
  ["zeros", new Uint8Array(1000), /./u],
  ["nested", new Uint8Array(100_000).fill(0x3b), /./u],
  [
    "unknown",
    onnxModel({
      inputs: [x],
      outputs: [{ ...x, name: "y" }],
      nodes: [{ op: "NoSuchOperator", inputs: ["x"], outputs: ["y"] }],
    }),
    /NoSuchOperator/u,
  ],
  [
    "circular",
    onnxModel({
      inputs: [x],
      outputs: [{ ...x, name: "y" }],
      nodes: [
        { op: "Add", inputs: ["x", "b"], outputs: ["y"] },
        { op: "Add", inputs: ["x", "y"], outputs: ["b"] },
      ],
    }),
    /./u,
  ],
  ["short", shortConstant([2 ** 20]), /./u],
  ["overflowing", shortConstant([2 ** 31, 2 ** 31, 2 ** 31]), /./u],
  ["heavy", heavyModel(2 ** 27), /took more memory than 67108864 bytes|bad_alloc|allocat/u],
];

describe("tidepool serve, given bad models", () => {
  const running = serving(
    (models) => {
      models.model("good", { 1: good });
      for (const [name, file] of badFiles) models.model(name, { 1: file });
      models.write("no-config/1/model.onnx", "this is no model");
      models.write("bad-config/config.pbtxt", "max_batch_size: many");
      models.write("bad-config/1/model.onnx", good);
      models.model(
        "other-tensors",
        { 1: good },
        'input [{ name: "z" data_type: TYPE_FP32 dims: [1] }]',
      );
      models.model("folders", { 1: good }, 'default_model_filename: "../../good/1/model.onnx"');
    },
    "--model-control-mode=explicit",
    "--load-model=good",
    "--probe-memory-limit-mb=64",
  );
  const load = (name: string): Promise<Answer> =>
    running.http.post(`/v2/repository/models/${name}/load`);

  it.each([
    ...badFiles.map(([name, , reason]) => [name, reason] as const),
    ["no-config", /./u] as const,
    ["bad-config", /max_batch_size/u] as const,
    ["other-tensors", /unexpected inference input 'z', allowed inputs are: x/u] as const,
    ["folders", /unable to find/u] as const,
  ])("refuses the model '%s' with a reason, and lives", async (name, reason) => {
    const answer = await load(name);
    expect([400, 500]).toContain(answer.status);
    expect(errorOf(answer)).toMatch(reason);
    expect(answer.text).not.toContain(running.models.path);
    const index: { name: string; reason?: string }[] = JSON.parse(
      (await running.http.post("/v2/repository/index")).text,
    );
    expect(index.find((line) => line.name === name)?.reason).toMatch(reason);
    expect((await running.http.infer("good", addingBody)).status).toBe(200);
    expect((await running.http.infer(name, addingBody)).status).not.toBe(200);
  });

  it("serves a model whose file was bad once", async () => {
    running.models.model("text", { 1: good });
    expect((await load("text")).status).toBe(200);
    expect((await running.http.infer("text", addingBody)).status).toBe(200);
  });
});
