import { describe, expect, it } from "vitest";
import { providerCandidates, sessionOptions } from "../../../pool/backend/session-options.ts";
import { cpu, type Device } from "../../../pool/devices.ts";
import { servedModel } from "../../helpers/served-model.ts";

const { config } = servedModel("m", {});
const supported = ["cpu", "webgpu", "cuda", "tensorrt"];

function withParameters(parameters: Readonly<Record<string, string>>): typeof config {
  const entries = Object.entries(parameters).map(
    ([name, stringValue]) => [name, { stringValue }] as const,
  );
  return { ...config, parameters: Object.fromEntries(entries) };
}

describe("sessionOptions", () => {
  it("gives an instance its share of the cores unless the config says otherwise", () => {
    expect(sessionOptions({ config, cores: 3 }, []).intraOpNumThreads).toBe(3);
    const told = withParameters({ intra_op_thread_count: "8" });
    expect(sessionOptions({ config: told, cores: 3 }, []).intraOpNumThreads).toBe(8);
  });

  it("reads what the config's parameters say", () => {
    const told = withParameters({
      execution_mode: "1",
      inter_op_thread_count: "2",
      enable_mem_arena: "false",
      enable_mem_pattern: "0",
      "session.set_denormal_as_zero": "1",
      "session.load_model_format": "ORT",
    });
    expect(sessionOptions({ config: told, cores: 1 }, [])).toMatchObject({
      executionMode: "parallel",
      interOpNumThreads: 2,
      enableCpuMemArena: false,
      enableMemPattern: false,
      extra: { "session.set_denormal_as_zero": "1" },
    });
  });

  it.each([
    [-1, "basic"],
    [0, "all"],
    [1, "extended"],
  ])("takes graph optimization level %i for %s", (level, name) => {
    const told = { ...config, optimization: { ...optimization, graph: { level } } };
    expect(sessionOptions({ config: told, cores: 1 }, []).graphOptimizationLevel).toBe(name);
  });

  it("names a parameter that it cannot read", () => {
    const modeless = withParameters({ execution_mode: "7" });
    expect(() => sessionOptions({ config: modeless, cores: 1 }, [])).toThrow(
      "parameter 'execution_mode': given '7', expected 0 (sequential) or 1 (parallel)",
    );
    const told = withParameters({ intra_op_thread_count: "many" });
    expect(() => sessionOptions({ config: told, cores: 1 }, [])).toThrow(
      "model 'm': parameter 'intra_op_thread_count': given 'many', expected an integer from 0 to 9999",
    );
  });
});

describe("providerCandidates", () => {
  const gpu: Device = { kind: "gpu", id: 0, orCpu: false };

  it("tries CUDA before WebGPU, and only what is supported", () => {
    expect(providerCandidates({ config, device: gpu }, supported)).toEqual([
      [{ name: "cuda", deviceId: 0 }],
      [{ name: "webgpu" }],
    ]);
    expect(providerCandidates({ config, device: gpu }, ["cpu", "webgpu"])).toEqual([
      [{ name: "webgpu" }],
    ]);
  });

  it("keeps WebGPU, which cannot choose, to the first device", () => {
    const second: Device = { kind: "gpu", id: 1, orCpu: false };
    expect(providerCandidates({ config, device: second }, supported)).toEqual([
      [{ name: "cuda", deviceId: 1 }],
    ]);
  });

  it("puts TensorRT in front where the config asks for it", () => {
    const told = withAccelerator("tensorrt");
    expect(providerCandidates({ config: told, device: gpu }, supported)[0]).toEqual([
      { name: "tensorrt", deviceId: 0 },
      { name: "cuda", deviceId: 0 },
    ]);
  });

  it("refuses an accelerator it does not know", () => {
    const told = withAccelerator("openvino");
    expect(() => providerCandidates({ config: told, device: cpu }, supported)).toThrow(
      "unknown Execution Accelerator 'openvino' is requested",
    );
  });
});

const optimization = {
  priority: "PRIORITY_DEFAULT",
  gatherKernelBufferThreshold: 0,
  eagerBatching: false,
} as const;

function withAccelerator(name: string): typeof config {
  const executionAccelerators = {
    gpuExecutionAccelerator: [{ name, parameters: {} }],
    cpuExecutionAccelerator: [],
  };
  return { ...config, optimization: { ...optimization, executionAccelerators } };
}
