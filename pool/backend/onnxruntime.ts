import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { TensorMetadata } from "../../protocol/metadata.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { Backend, LoadedModel } from "./backend.ts";
import { floatInput, floatOutput } from "./float-ports.ts";
import { openAndSave, openSession, type OpenedSession } from "./open-session.ts";
import type { OrtSession, OrtTensor } from "./ort-binding.ts";
import { ortError } from "./ort-error.ts";
import { fromOrt, toOrt } from "./ort-tensor.ts";

/** Runs ONNX models with ONNX Runtime, on the CPU or on the GPU. */
export const onnxruntimeBackend: Backend = {
  load: async (settings) => new OnnxModel(settings.modelName, await openSession(settings)),
  save: async (settings, folder) =>
    new OnnxModel(settings.modelName, await openAndSave(settings, folder)),
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

  constructor(modelName: string, { session, inputs, outputs }: OpenedSession) {
    this.inputs = inputs;
    this.outputs = outputs;
    this.#modelName = modelName;
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

function ports(
  tensors: readonly TensorMetadata[],
  floatPort: (name: string) => string,
): ReadonlyMap<string, Port> {
  return new Map(
    tensors.map((tensor) => [
      tensor.name,
      { ...tensor, sessionName: tensor.datatype === "BF16" ? floatPort(tensor.name) : tensor.name },
    ]),
  );
}
