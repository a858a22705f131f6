import { readdirSync, truncateSync, unlinkSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import type { InstanceSettings } from "../../../pool/backend/backend.ts";
import { onnxruntimeBackend } from "../../../pool/backend/onnxruntime.ts";
import { encodeStrings } from "../../../pool/backend/string-elements.ts";
import { cpu } from "../../../pool/devices.ts";
import type { Datatype } from "../../../protocol/datatype.ts";
import type { ModelConfig } from "../../../protocol/model-config.ts";
import type { Tensor } from "../../../protocol/tensor.ts";
import { identityModel, onnxModel, type OnnxGraph } from "../../helpers/onnx-model.ts";
import { onnxVersion, testFolder } from "../../helpers/onnx-version.ts";

function settings(model: Uint8Array, config: Partial<ModelConfig> = {}): InstanceSettings {
  const { name, config: full, versionDirectory } = onnxVersion(model, config);
  return { modelName: name, config: full, versionDirectory, device: cpu, cores: 1 };
}

/** Bytes that look like numbers of any kind. */
function pattern(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => (i % 4 === 3 ? 61 + (i % 3) : (i * 37) % 251));
}

function weights(name: string, datatype: Datatype, shape: readonly number[], bytes: number) {
  return { name, datatype, shape, bytes: pattern(bytes) };
}

const floats = (name: string, ...shape: (number | string)[]) =>
  ({ name, datatype: "FP32", shape }) as const;

const multiply: OnnxGraph = {
  inputs: [floats("X", "n", 32)],
  outputs: [floats("Y", "n", 32)],
  initializers: [weights("W", "FP32", [32, 32], 4096), weights("B", "FP32", [32], 128)],
  nodes: [
    { op: "MatMul", inputs: ["X", "W"], outputs: ["p"] },
    { op: "Add", inputs: ["p", "B"], outputs: ["q"] },
    { op: "Relu", inputs: ["q"], outputs: ["Y"] },
  ],
};

const convolution: OnnxGraph = {
  inputs: [floats("X", "n", 16, "h", "w")],
  outputs: [floats("Y", "n", 32, "a", "b")],
  initializers: [weights("W", "FP32", [32, 16, 3, 3], 18_432)],
  nodes: [
    { op: "Conv", inputs: ["X", "W"], outputs: ["c"] },
    { op: "Relu", inputs: ["c"], outputs: ["Y"] },
  ],
};

const quantised: OnnxGraph = {
  inputs: [floats("X", "n", 64)],
  outputs: [{ name: "Y", datatype: "INT32", shape: ["n", 33] }],
  initializers: [weights("W", "INT8", [64, 33], 64 * 33)],
  nodes: [
    { op: "DynamicQuantizeLinear", inputs: ["X"], outputs: ["q", "s", "z"] },
    { op: "MatMulInteger", inputs: ["q", "W", "z"], outputs: ["Y"] },
  ],
};

const bf16: OnnxGraph = {
  inputs: [{ name: "X", datatype: "BF16", shape: ["n", 32] }],
  outputs: [{ name: "Y", datatype: "BF16", shape: ["n", 32] }],
  initializers: [weights("W", "FP32", [32, 32], 4096)],
  nodes: [
    { op: "Cast", inputs: ["X"], outputs: ["x"], attributes: { to: 1 } },
    { op: "MatMul", inputs: ["x", "W"], outputs: ["y"] },
    { op: "Cast", inputs: ["y"], outputs: ["Y"], attributes: { to: 16 } },
  ],
};

/** Takes one of two branches. */
const branching: OnnxGraph = {
  inputs: [{ name: "C", datatype: "BOOL", shape: [] }, floats("X", "n", 32)],
  outputs: [floats("Y", "n", 32)],
  initializers: [weights("W", "FP32", [32, 32], 4096), weights("V", "FP32", [32, 32], 4096)],
  nodes: [
    {
      op: "If",
      inputs: ["C"],
      outputs: ["Y"],
      attributes: { then_branch: branch("t", "W"), else_branch: branch("e", "V") },
    },
  ],
};

function branch(name: string, factor: string): OnnxGraph {
  return {
    inputs: [],
    outputs: [floats(name, "n", 32)],
    nodes: [{ op: "MatMul", inputs: ["X", factor], outputs: [name] }],
  };
}

const tensor = (datatype: Datatype, shape: readonly number[], bytes: number): Tensor => ({
  name: "X",
  datatype,
  shape,
  bytes: pattern(bytes),
});
const strings = encodeStrings(["tide", "", "pool 🌊"]);

const cases: readonly (readonly [string, Uint8Array, readonly Tensor[]])[] = [
  ["matrices", onnxModel(multiply), [tensor("FP32", [3, 32], 384)]],
  ["convolutions", onnxModel(convolution), [tensor("FP32", [2, 16, 7, 9], 8064)]],
  ["quantised weights", onnxModel(quantised), [tensor("FP32", [2, 64], 512)]],
  ["BF16", onnxModel(bf16), [tensor("BF16", [2, 32], 128)]],
  [
    "branches",
    onnxModel(branching),
    [
      { name: "C", datatype: "BOOL", shape: [], bytes: Uint8Array.of(0) },
      tensor("FP32", [1, 32], 128),
    ],
  ],
  [
    "strings",
    identityModel([{ name: "X", datatype: "BYTES", shape: ["n"] }, "Y"]),
    [{ name: "X", datatype: "BYTES", shape: [3], bytes: strings }],
  ],
];

describe("openAndSave", () => {
  it.each(cases)("leaves a graph with %s that gives the same results", async (_, model, inputs) => {
    const original = settings(model);
    const savedGraph = testFolder();
    const saving = await onnxruntimeBackend.save(original, savedGraph);
    const saved = await onnxruntimeBackend.load({ ...original, savedGraph });
    expect([saved.inputs, saved.outputs]).toEqual([saving.inputs, saving.outputs]);
    const expected = (await onnxruntimeBackend.load(original)).run(inputs, ["Y"]);
    expect(saving.run(inputs, ["Y"])).toEqual(expected);
    expect(saved.run(inputs, ["Y"])).toEqual(expected);
  });

  it.each([-1, 1])("saves at optimization level %i, too", async (level) => {
    const optimization = {
      graph: { level },
      priority: "PRIORITY_DEFAULT",
      gatherKernelBufferThreshold: 0,
      eagerBatching: false,
    } as const;
    const original = settings(onnxModel(convolution), { optimization });
    const savedGraph = testFolder();
    const inputs = [tensor("FP32", [1, 16, 5, 5], 1600)];
    const expected = (await onnxruntimeBackend.save(original, savedGraph)).run(inputs, ["Y"]);
    const saved = await onnxruntimeBackend.load({ ...original, savedGraph });
    expect(saved.run(inputs, ["Y"])).toEqual(expected);
  });

  it("saves a model whose weights lie beside it", async () => {
    const inputs = [tensor("FP32", [3, 32], 384)];
    const external = testFolder();
    const made = await onnxruntimeBackend.save(settings(onnxModel(multiply)), external);
    const original = { ...settings(onnxModel(multiply)), versionDirectory: external };
    expect(readdirSync(external)).toContain("weights.bin");
    const savedGraph = testFolder();
    await onnxruntimeBackend.save(original, savedGraph);
    const saved = await onnxruntimeBackend.load({ ...original, savedGraph });
    expect(saved.run(inputs, ["Y"])).toEqual(made.run(inputs, ["Y"]));
  });
});

describe("openSession", () => {
  it("refuses a saved graph that lacks its weights or a part of them", async () => {
    const original = settings(onnxModel(multiply));
    const savedGraph = testFolder();
    await onnxruntimeBackend.save(original, savedGraph);
    const file = path.join(savedGraph, "weights.bin");
    truncateSync(file, 100);
    await expect(onnxruntimeBackend.load({ ...original, savedGraph })).rejects.toThrow("onnx");
    unlinkSync(file);
    await expect(onnxruntimeBackend.load({ ...original, savedGraph })).rejects.toThrow("onnx");
  });
});
