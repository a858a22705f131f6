import { readFileSync } from "node:fs";
import path from "node:path";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { TensorMetadata } from "../../protocol/metadata.ts";
import type { InstanceSettings } from "./backend.ts";
import { behindFloatPort } from "./float-ports.ts";
import { onnxFile } from "./model-file.ts";
import { newSession, supportedProviders, type OrtSession } from "./ort-binding.ts";
import { ortError } from "./ort-error.ts";
import { graphTensors } from "./session-graph.ts";
import {
  providerCandidates,
  sessionOptions,
  type ExecutionProvider,
  type SessionOptions,
} from "./session-options.ts";

/** A session with its model, and the tensors of the model as the protocol sees them. */
export interface OpenedSession {
  readonly session: OrtSession;
  readonly inputs: readonly TensorMetadata[];
  readonly outputs: readonly TensorMetadata[];
}

const cpuOnly: readonly ExecutionProvider[] = [{ name: "cpu" }];
const savedFile = "model.onnx";
/** Smaller constants stay in the graph's own file. */
const smallestWeightBytes = "1024";

/** Opens the model with the first execution provider that takes it; the reasons of all others are in the error. */
export async function openSession(settings: InstanceSettings): Promise<OpenedSession> {
  const reasons: string[] = [];
  for (const providers of providerCandidates(settings, supportedProviders())) {
    try {
      return await openWith(settings, providers);
    } catch (error) {
      if (settings.device.kind === "cpu") throw error;
      reasons.push(
        `${providers.map(({ name }) => name).join("+")}: ${InferenceError.from(error).message}`,
      );
    }
  }
  if (settings.device.kind === "gpu" && settings.device.orCpu) return openWith(settings, cpuOnly);
  throw new InferenceError(
    StatusCode.Unavailable,
    `model '${settings.modelName}' has kind KIND_GPU but no execution provider for GPUs works here` +
      (reasons.length > 0 ? ` (${reasons.join("; ")})` : ""),
  );
}

/**
 * Opens the model on the CPU and writes down what the runtime has made of it: the optimised graph, and beside it the
 * weights, which the next session then maps into its memory instead of reading them.
 */
export function openAndSave(settings: InstanceSettings, folder: string): Promise<OpenedSession> {
  const options = sessionOptions(settings, cpuOnly);
  return openFile(settings, {
    ...options,
    optimizedModelFilePath: path.join(folder, savedFile),
    extra: {
      ...options.extra,
      "session.optimized_model_external_initializers_file_name": "weights.bin",
      "session.optimized_model_external_initializers_min_size_in_bytes": smallestWeightBytes,
    },
  });
}

async function openWith(
  settings: InstanceSettings,
  providers: readonly ExecutionProvider[],
): Promise<OpenedSession> {
  const options = sessionOptions(settings, providers);
  // What was saved is laid out for the CPU.
  const onCpu = providers.every(({ name }) => name === "cpu");
  return onCpu && settings.savedGraph !== undefined
    ? openSaved(settings.modelName, settings.savedGraph, options)
    : openFile(settings, options);
}

function openSaved(modelName: string, folder: string, options: SessionOptions): OpenedSession {
  const session = newSession();
  try {
    const file = path.join(folder, savedFile);
    session.loadModel(file, { ...options, graphOptimizationLevel: "disabled" });
    const { inputs, outputs } = graphTensors(modelName, session);
    return {
      session,
      inputs: inputs.map(behindFloatPort),
      outputs: outputs.map(behindFloatPort),
    };
  } catch (cause) {
    throw ortError(`failed to load model '${modelName}'`, cause);
  }
}

async function openFile(
  settings: InstanceSettings,
  options: SessionOptions,
): Promise<OpenedSession> {
  const file = onnxFile(settings.config, settings.versionDirectory);
  const session = newSession();
  try {
    session.loadModel(file, options);
    const { inputs, outputs } = graphTensors(settings.modelName, session);
    const bf16 = new Set([...inputs, ...outputs].filter(isBf16).map(({ name }) => name));
    if (bf16.size === 0) return { session, inputs, outputs };
    session.dispose();
    return { session: await openWithFloatPorts(file, bf16, options), inputs, outputs };
  } catch (cause) {
    throw ortError(`failed to load model '${settings.modelName}'`, cause);
  }
}

async function openWithFloatPorts(
  file: string,
  bf16: ReadonlySet<string>,
  options: SessionOptions,
): Promise<OrtSession> {
  // Few models need it, and a thread that does not import it is smaller.
  const { withFloatPorts } = await import("./onnx-file.ts");
  const model = withFloatPorts(readFileSync(file), bf16);
  const extra = {
    ...options.extra,
    "session.model_external_initializers_file_folder_path": path.dirname(file),
  };
  const session = newSession();
  session.loadModel(model.buffer, model.byteOffset, model.byteLength, { ...options, extra });
  return session;
}

function isBf16({ datatype }: TensorMetadata): boolean {
  return datatype === "BF16";
}
