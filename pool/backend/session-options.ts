import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { ModelConfig } from "../../protocol/model-config.ts";
import type { InstanceSettings } from "./backend.ts";

/** What onnxruntime-node takes when it makes a session, as far as a config can say it. */
export interface SessionOptions {
  readonly executionProviders: readonly ExecutionProvider[];
  readonly intraOpNumThreads: number;
  readonly interOpNumThreads: number;
  readonly executionMode: "sequential" | "parallel";
  readonly graphOptimizationLevel: "disabled" | "basic" | "extended" | "all";
  readonly enableCpuMemArena: boolean;
  readonly enableMemPattern: boolean;
  /** Where to write the optimised graph. */
  readonly optimizedModelFilePath?: string;
  /** Session config entries by ONNX Runtime's own names. */
  readonly extra: Readonly<Record<string, string>>;
}

export interface ExecutionProvider {
  readonly name: string;
  readonly deviceId?: number;
}

/** Session config entries that a model's `parameters` may set; others could point outside the model's folder. */
const sessionEntries = [
  "session.use_device_allocator_for_initializers",
  "session.set_denormal_as_zero",
  "session.intra_op.allow_spinning",
  "session.inter_op.allow_spinning",
  "session.disable_prepacking",
];

/**
 * Reads a config's `optimization` and `parameters`. Where it names no thread count an instance uses its own share of
 * the cores, because instances that all use all of them only take them from one another. Whether idle threads spin is
 * left to the runtime: with as many threads as cores, a convolutional model was neither faster nor slower without it.
 * Throws INVALID_ARG.
 */
export function sessionOptions(
  { config, cores }: Pick<InstanceSettings, "config" | "cores">,
  executionProviders: readonly ExecutionProvider[],
): SessionOptions {
  const level = config.optimization?.graph?.level ?? 0;
  return {
    executionProviders,
    intraOpNumThreads: integer(config, "intra_op_thread_count", cores),
    interOpNumThreads: integer(config, "inter_op_thread_count", 1),
    executionMode: executionMode(config),
    graphOptimizationLevel: level < 0 ? "basic" : level === 0 ? "all" : "extended",
    enableCpuMemArena: flag(config, "enable_mem_arena", true),
    enableMemPattern: flag(config, "enable_mem_pattern", true),
    extra: Object.fromEntries(
      sessionEntries.flatMap((entry) => {
        const value = config.parameters[entry]?.stringValue;
        return value === undefined ? [] : [[entry, value]];
      }),
    ),
  };
}

/**
 * The execution providers to try for an instance, best first; the first whose session opens is used.
 * Throws INVALID_ARG for an accelerator that is not known.
 */
export function providerCandidates(
  { config, device }: Pick<InstanceSettings, "config" | "device">,
  supported: readonly string[],
): readonly (readonly ExecutionProvider[])[] {
  const wanted = gpuAccelerators(config);
  if (device.kind === "cpu") return [[{ name: "cpu" }]];
  const cuda = { name: "cuda", deviceId: device.id };
  const candidates: (readonly ExecutionProvider[])[] = [];
  if (wanted.includes("tensorrt")) {
    candidates.push([{ name: "tensorrt", deviceId: device.id }, cuda]);
  }
  candidates.push([cuda]);
  // WebGPU cannot be told which device to take, so it serves the first one only.
  if (device.id === 0) candidates.push([{ name: "webgpu" }]);
  return candidates.filter((providers) => providers.every(({ name }) => supported.includes(name)));
}

function gpuAccelerators(config: ModelConfig): readonly string[] {
  const accelerators = config.optimization?.executionAccelerators;
  for (const { name } of accelerators?.cpuExecutionAccelerator ?? []) {
    throw unknownAccelerator(name);
  }
  const names = accelerators?.gpuExecutionAccelerator.map(({ name }) => name) ?? [];
  for (const name of names) {
    if (name !== "tensorrt" && name !== "cuda") throw unknownAccelerator(name);
  }
  return names;
}

function unknownAccelerator(name: string): InferenceError {
  return new InferenceError(
    StatusCode.InvalidArg,
    `unknown Execution Accelerator '${name}' is requested`,
  );
}

/** As onnxruntime numbers its modes. */
function executionMode(config: ModelConfig): "sequential" | "parallel" {
  const mode = integer(config, "execution_mode", 0);
  if (mode > 1) throw badParameter(config, "execution_mode", "0 (sequential) or 1 (parallel)");
  return mode === 0 ? "sequential" : "parallel";
}

function integer(config: ModelConfig, name: string, otherwise: number): number {
  const text = config.parameters[name]?.stringValue;
  if (text === undefined) return otherwise;
  if (!/^\d{1,4}$/.test(text)) throw badParameter(config, name, "an integer from 0 to 9999");
  return Number(text);
}

function flag(config: ModelConfig, name: string, otherwise: boolean): boolean {
  const text = config.parameters[name]?.stringValue.toLowerCase();
  if (text === undefined) return otherwise;
  if (text === "1" || text === "true") return true;
  if (text === "0" || text === "false") return false;
  throw badParameter(config, name, "0, 1, true or false");
}

function badParameter(config: ModelConfig, name: string, expected: string): InferenceError {
  const given = config.parameters[name]?.stringValue;
  return new InferenceError(
    StatusCode.InvalidArg,
    `model '${config.name}': parameter '${name}': given '${given}', expected ${expected}`,
  );
}
