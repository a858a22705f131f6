import { describe, expect, it } from "vitest";
import { inferBackend, normaliseConfig } from "../../repository/complete-config.ts";
import { configOf } from "../fixtures/configs.ts";

describe("inferBackend", () => {
  const onnx = { backend: "onnxruntime", platform: "onnxruntime_onnx" };
  const savedModel = {
    backend: "tensorflow",
    platform: "tensorflow_savedmodel",
    defaultModelFilename: "model.savedmodel",
  };
  const graphDef = {
    backend: "tensorflow",
    platform: "tensorflow_graphdef",
    defaultModelFilename: "model.graphdef",
  };

  it.each([
    ["", ["model.onnx"], { ...onnx, defaultModelFilename: "model.onnx" }],
    [
      "",
      ["model.onnx/model.onnx", "model.onnx/w"],
      { ...onnx, defaultModelFilename: "model.onnx" },
    ],
    ["", ["model.py", "model.onnx"], { ...onnx, defaultModelFilename: "model.onnx" }],
    [
      "",
      ["helper.py", "model.py"],
      { backend: "python", platform: "", defaultModelFilename: "model.py" },
    ],
    ["backend: 'python'", ["model.onnx"], { backend: "python", defaultModelFilename: "model.py" }],
    [
      "backend: 'onnxruntime' default_model_filename: 'a.bin'",
      [],
      { ...onnx, defaultModelFilename: "a.bin" },
    ],
    ["platform: 'onnxruntime_onnx'", [], { ...onnx, defaultModelFilename: "model.onnx" }],
    [
      "default_model_filename: 'net.onnx'",
      ["net.onnx"],
      { ...onnx, defaultModelFilename: "net.onnx" },
    ],
    ["", ["model.savedmodel/saved_model.pb"], savedModel],
    ["backend: 'tensorflow'", [], savedModel],
    ["backend: 'tensorflow'", ["model.graphdef"], graphDef],
    ["backend: 'tensorflow' platform: 'tensorflow_graphdef'", [], graphDef],
    [
      "backend: 'tensorflow' default_model_filename: 'a.graphdef'",
      ["model.savedmodel/saved_model.pb"],
      { ...graphDef, defaultModelFilename: "a.graphdef" },
    ],
    ["platform: 'ensemble'", [], { backend: "", platform: "ensemble", defaultModelFilename: "" }],
    ["platform: 'abacus'", ["model.onnx"], { backend: "", platform: "abacus" }],
    ["backend: 'abacus'", ["model.onnx"], { backend: "abacus", platform: "" }],
  ])("completes %j beside the files %j", (text, files, completed) => {
    const config = inferBackend(configOf(text), "m", files);
    expect(config).toMatchObject({ name: "m", ...completed });
  });

  it("refuses files that tell nothing", () => {
    expect(() => inferBackend(configOf(""), "m", ["net.onnx", "data"])).toThrow(
      "Invalid model name: Could not determine backend for model 'm' with no backend in model configuration. Expected model name of the form 'model.<backend_name>'.",
    );
  });

  it("refuses another name than the directory's", () => {
    expect(() => inferBackend(configOf("name: 'a'"), "m", ["model.onnx"])).toThrow(
      "unexpected directory name 'm' for model 'a', directory name must equal model name",
    );
  });
});

describe("normaliseConfig", () => {
  const onnx = "name: 'm' backend: 'onnxruntime' max_batch_size: 8 ";

  it("shows the defaults that are in force", () => {
    expect(normaliseConfig(configOf(onnx), { gpuCount: 0 })).toMatchObject({
      versionPolicy: { latest: { numVersions: 1 } },
      optimization: {
        priority: "PRIORITY_DEFAULT",
        inputPinnedMemory: { enable: true },
        outputPinnedMemory: { enable: true },
        gatherKernelBufferThreshold: 0,
        eagerBatching: false,
      },
    });
  });

  it("keeps what the config says", () => {
    const text = `${onnx} version_policy { all {} }
      optimization { priority: PRIORITY_MAX output_pinned_memory { enable: false } }
      dynamic_batching { preferred_batch_size: 2 }`;
    expect(normaliseConfig(configOf(text), { gpuCount: 0 })).toMatchObject({
      versionPolicy: { all: {} },
      optimization: {
        priority: "PRIORITY_MAX",
        inputPinnedMemory: { enable: true },
        outputPinnedMemory: { enable: false },
      },
      dynamicBatching: { preferredBatchSize: [2] },
    });
  });

  it("prefers the largest batch where the config prefers none", () => {
    const dynamic = normaliseConfig(configOf(`${onnx} dynamic_batching {}`), { gpuCount: 0 });
    expect(dynamic.dynamicBatching?.preferredBatchSize).toEqual([8]);
    const oldest = normaliseConfig(configOf(`${onnx} sequence_batching { oldest {} }`), {
      gpuCount: 0,
    });
    expect(oldest.sequenceBatching?.oldest?.preferredBatchSize).toEqual([8]);
    const unbatched = normaliseConfig(configOf("dynamic_batching {}"), { gpuCount: 0 });
    expect(unbatched.dynamicBatching?.preferredBatchSize).toEqual([]);
  });

  it("lets a sequence idle for a second unless the config says how long", () => {
    const open = normaliseConfig(configOf("sequence_batching {}"), { gpuCount: 0 });
    expect(open.sequenceBatching?.maxSequenceIdleMicroseconds).toBe(1_000_000);
    const text = "sequence_batching { max_sequence_idle_microseconds: 5 }";
    const said = normaliseConfig(configOf(text), { gpuCount: 0 });
    expect(said.sequenceBatching?.maxSequenceIdleMicroseconds).toBe(5);
  });

  it.each([
    ["no group on a CPU", "", 0, [{ name: "m", kind: "KIND_CPU", count: 2, gpus: [] }]],
    ["no group on GPUs", "", 2, [{ name: "m", kind: "KIND_GPU", count: 1, gpus: [0, 1] }]],
    ["an empty group", "instance_group {}", 0, [{ name: "m_0", kind: "KIND_CPU", count: 2 }]],
    [
      "a CPU group beside GPUs",
      "instance_group { kind: KIND_CPU }",
      1,
      [{ kind: "KIND_CPU", count: 2, gpus: [] }],
    ],
    [
      "a chosen GPU",
      "instance_group { gpus: 1 count: 3 }",
      2,
      [{ kind: "KIND_GPU", count: 3, gpus: [1] }],
    ],
    ["a GPU that is not there", "instance_group { gpus: 4 }", 2, [{ kind: "KIND_CPU", gpus: [4] }]],
    [
      "GPUs without any",
      "instance_group { kind: KIND_GPU }",
      0,
      [{ kind: "KIND_GPU", count: 1, gpus: [] }],
    ],
    ["a negative count", "instance_group { count: -1 }", 0, [{ count: 2 }]],
    ["some names", "instance_group [ { name: 'a' }, { } ]", 0, [{ name: "a" }, { name: "m_1" }]],
    [
      "the model's own kind",
      "instance_group { kind: KIND_MODEL }",
      0,
      [{ kind: "KIND_MODEL", count: 1 }],
    ],
  ])("resolves %s", (_, text, gpuCount, groups) => {
    const { instanceGroup } = normaliseConfig(configOf(onnx + text), { gpuCount });
    expect(instanceGroup).toMatchObject(groups);
  });

  it("runs one instance of any other backend", () => {
    const { instanceGroup } = normaliseConfig(configOf("backend: 'python'"), { gpuCount: 0 });
    expect(instanceGroup.map(({ count }) => count)).toEqual([1]);
  });

  it("gives an ensemble no instances and no optimization", () => {
    const config = normaliseConfig(configOf("platform: 'ensemble'"), { gpuCount: 1 });
    expect(config.instanceGroup).toEqual([]);
    expect(config.optimization).toBeUndefined();
    expect(config.modelTransactionPolicy).toEqual({ decoupled: false });
  });

  it("changes nothing the second time", () => {
    const once = normaliseConfig(configOf(`${onnx} sequence_batching { oldest {} }`), {
      gpuCount: 2,
    });
    expect(normaliseConfig(once, { gpuCount: 2 })).toEqual(once);
  });
});
