import { readFileSync } from "node:fs";
import path from "node:path";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { TensorMetadata } from "../../protocol/metadata.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { Backend, InstanceSettings, LoadedModel } from "./backend.ts";
import { onnxFile } from "./model-file.ts";
import { floatInput, floatOutput, withFloatPorts } from "./onnx-file.ts";
import { newSession, supportedProviders, type OrtSession, type OrtTensor } from "./ort-binding.ts";
import { fromOrt, toOrt } from "./ort-tensor.ts";
import { graphTensors } from "./session-graph.ts";
import { ortError } from "./ort-error.ts";
import {
  providerCandidates,
  sessionOptions,
  type ExecutionProvider,
  type SessionOptions,
} from "./session-options.ts";

/** Runs ONNX models with ONNX Runtime, on the CPU or on the GPU. */
export const onnxruntimeBackend: Backend = {
  load: (settings) => new OnnxModel(settings),
};

/** A tensor of the graph, and the name under which the session knows it. */
interface Port extends TensorMetadata {
  readonly sessionName: string;
}

class OnnxModel implements LoadedModel {
  readonly inputs: readonly TensorMetadata[];
  readonly outputs: readonly TensorMetadata[];
  readonly #modelName: string;
  readonly #session: OrtSession;
  readonly #inputPorts: ReadonlyMap<string, Port>;
  readonly #outputPorts: ReadonlyMap<string, Port>;

  constructor(settings: InstanceSettings) {
    const { session, inputs, outputs } = openSession(settings);
    this.inputs = inputs;
    this.outputs = outputs;
    this.#modelName = settings.modelName;
    this.#session = session;
    this.#inputPorts = ports(inputs, floatInput);
    this.#outputPorts = ports(outputs, floatOutput);
  }

  run(inputs: readonly Tensor[], outputs: readonly string[]): readonly Tensor[] {
    const feeds = this.#feeds(inputs);
    const wanted = outputs.map((name) => this.#output(name));
    // Without a prototype: the binding asks whether a name is `in` the object, and a tensor may be called "constructor".
    const fetches: Record<string, null> = Object.create(null);
    for (const { sessionName } of wanted) fetches[sessionName] = null;
    const results = this.#run(feeds, fetches);
    return wanted.map(({ name, datatype, sessionName }) => {
      const value = results[sessionName];
      if (!value)
        throw new InferenceError(
          StatusCode.Internal,
          `model '${this.#modelName}' gave no output '${name}'`,
        );
      return fromOrt(name, datatype, value);
    });
  }

  #run(feeds: Record<string, OrtTensor>, fetches: Record<string, null>): Record<string, OrtTensor> {
    try {
      return this.#session.run(feeds, fetches);
    } catch (cause) {
      throw ortError(`model '${this.#modelName}'`, cause);
    }
  }

  #feeds(inputs: readonly Tensor[]): Record<string, OrtTensor> {
    const feeds: Record<string, OrtTensor> = Object.create(null);
    for (const tensor of inputs) {
      const port = this.#inputPorts.get(tensor.name);
      if (!port) throw this.#unknown("input", tensor.name);
      // A config cannot say "scalar" and writes [1]; the graph can, and means it.
      const scalar = port.shape.length === 0 && tensor.shape.length === 1 && tensor.shape[0] === 1;
      feeds[port.sessionName] = toOrt(tensor, scalar ? [] : tensor.shape);
    }
    // The runtime does not check this and hands null to whatever node reads it.
    if (inputs.length < this.#inputPorts.size) this.#refuseMissing(feeds);
    return feeds;
  }

  #refuseMissing(feeds: Record<string, OrtTensor>): void {
    for (const { name, sessionName } of this.#inputPorts.values()) {
      if (sessionName in feeds) continue;
      const text = `model '${this.#modelName}': input '${name}' is missing, and the graph has no default for it`;
      throw new InferenceError(StatusCode.InvalidArg, text);
    }
  }

  #output(name: string): Port {
    const port = this.#outputPorts.get(name);
    if (!port) throw this.#unknown("output", name);
    return port;
  }

  #unknown(direction: "input" | "output", name: string): InferenceError {
    const text = `unexpected inference ${direction} '${name}' for model '${this.#modelName}'`;
    return new InferenceError(StatusCode.InvalidArg, text);
  }
}

interface OpenedSession {
  readonly session: OrtSession;
  readonly inputs: readonly TensorMetadata[];
  readonly outputs: readonly TensorMetadata[];
}

/** Opens the model with the first execution provider that takes it; the reasons of all others are in the error. */
function openSession(settings: InstanceSettings): OpenedSession {
  const reasons: string[] = [];
  for (const providers of providerCandidates(settings, supportedProviders())) {
    try {
      return openWith(settings, providers);
    } catch (error) {
      if (settings.device.kind === "cpu") throw error;
      reasons.push(
        `${providers.map(({ name }) => name).join("+")}: ${InferenceError.from(error).message}`,
      );
    }
  }
  if (settings.device.kind === "gpu" && settings.device.orCpu)
    return openWith(settings, [{ name: "cpu" }]);
  throw new InferenceError(
    StatusCode.Unavailable,
    `model '${settings.modelName}' has kind KIND_GPU but no execution provider for GPUs works here` +
      (reasons.length > 0 ? ` (${reasons.join("; ")})` : ""),
  );
}

function openWith(
  settings: InstanceSettings,
  providers: readonly ExecutionProvider[],
): OpenedSession {
  const file = onnxFile(settings.config, settings.versionDirectory);
  const options = sessionOptions(settings, providers);
  const session = newSession();
  try {
    session.loadModel(file, options);
    const { inputs, outputs } = graphTensors(settings.modelName, session);
    const bf16 = new Set([...inputs, ...outputs].filter(isBf16).map(({ name }) => name));
    if (bf16.size === 0) return { session, inputs, outputs };
    session.dispose();
    return { session: openWithFloatPorts(file, bf16, options), inputs, outputs };
  } catch (cause) {
    throw ortError(`failed to load model '${settings.modelName}'`, cause);
  }
}

function openWithFloatPorts(
  file: string,
  bf16: ReadonlySet<string>,
  options: SessionOptions,
): OrtSession {
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

function ports(
  tensors: readonly TensorMetadata[],
  floatPort: (name: string) => string,
): ReadonlyMap<string, Port> {
  return new Map(
    tensors.map((tensor) => [
      tensor.name,
      { ...tensor, sessionName: isBf16(tensor) ? floatPort(tensor.name) : tensor.name },
    ]),
  );
}
