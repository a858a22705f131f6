import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import { noParameters } from "../../protocol/parameters.ts";
import { sameItemShape, shapeMatches, shapeText, type Shape } from "../../protocol/shape.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { ValidInferenceRequest } from "../../protocol/valid-request.ts";
import type { TensorParts } from "../instance/messages.ts";
import { cutRows } from "./rows.ts";

/** Dimensions of one tensor without the batch: as clients see them, and as the model does. */
interface Reshape {
  readonly client: Shape;
  readonly model: Shape;
}

/**
 * Puts requests together into one run of a model and takes its outputs apart again: concatenation along the first
 * dimension, with the config's `reshape` applied on the way in and undone on the way out.
 */
export class Batcher {
  readonly #model: ServedModel;
  readonly #inputReshapes: ReadonlyMap<string, Reshape>;
  readonly #outputReshapes: ReadonlyMap<string, Reshape>;
  readonly #allOutputs: readonly string[];

  constructor(model: ServedModel) {
    this.#model = model;
    this.#inputReshapes = reshapes(model.config.input);
    this.#outputReshapes = reshapes(model.config.output);
    this.#allOutputs = model.config.output.map(({ name }) => name);
  }

  /** One tensor for each input of the requests, still in parts. All requests must have the same inputs. */
  merge(requests: readonly ValidInferenceRequest[]): readonly TensorParts[] {
    const [first, ...others] = requests;
    if (!first) return [];
    return first.inputs.map((input) => {
      const tensors = others.map((request) => this.#sameInput(request, first, input));
      const shape = this.#batchShape([input, ...tensors]);
      return {
        name: input.name,
        datatype: input.datatype,
        shape: this.#reshaped(shape, this.#inputReshapes.get(input.name), "input", input.name),
        parts: [input.bytes, ...tensors.map(({ bytes }) => bytes)],
      };
    });
  }

  #sameInput(request: ValidInferenceRequest, first: ValidInferenceRequest, input: Tensor): Tensor {
    const found = request.inputs.find(({ name }) => name === input.name);
    if (found && request.inputs.length === first.inputs.length) return found;
    throw this.#internal("requests with different inputs came into one batch");
  }

  #batchShape(tensors: readonly Tensor[]): Shape {
    const [first, ...others] = tensors;
    if (!first || others.length === 0) return first?.shape ?? [];
    const [items, ...rest] = first.shape;
    if (this.#model.config.maxBatchSize === 0 || items === undefined) {
      throw this.#internal("several requests came into one batch of a model without batching");
    }
    let sum = items;
    for (const { name, shape } of others) {
      if (!sameItemShape(first.shape, shape)) {
        throw this.#internal(
          `input '${name}' came into one batch with shapes ${shapeText(first.shape)} and ${shapeText(shape)}`,
        );
      }
      sum += shape[0] ?? 0;
    }
    return [sum, ...rest];
  }

  /** The outputs that any of the requests wants. */
  outputs(requests: readonly ValidInferenceRequest[]): readonly string[] {
    if (requests.every(({ outputs }) => outputs.length === 0)) return this.#allOutputs;
    const names = new Set<string>();
    for (const { outputs } of requests) {
      if (outputs.length === 0) for (const name of this.#allOutputs) names.add(name);
      else for (const { name } of outputs) names.add(name);
    }
    return [...names];
  }

  /** One response for each request, in their order, with views on the outputs. */
  split(
    requests: readonly ValidInferenceRequest[],
    outputs: readonly Tensor[],
  ): readonly InferenceResponse[] {
    const sizes = requests.map(({ batchSize }) => batchSize);
    const shares = new Map(outputs.map((output) => [output.name, this.#shares(output, sizes)]));
    return requests.map((request, i) => ({
      modelName: this.#model.name,
      modelVersion: this.#model.version,
      id: request.id,
      parameters: noParameters,
      outputs: this.outputs([request]).flatMap((name) => shares.get(name)?.[i] ?? []),
    }));
  }

  #shares(output: Tensor, sizes: readonly number[]): readonly Tensor[] {
    const reshape = this.#outputReshapes.get(output.name);
    if (this.#model.config.maxBatchSize === 0) return [this.#unbatched(output, reshape)];
    const total = sizes.reduce((sum, size) => sum + size, 0);
    const [items, ...rest] = output.shape;
    if (items !== total) {
      throw this.#internal(
        `output '${output.name}': given shape ${shapeText(output.shape)}, expected a batch of ${total}`,
      );
    }
    return cutRows(output, sizes).map((bytes, i) => {
      const shape = this.#reshaped(
        [sizes[i] ?? 0, ...rest],
        reshape && inverse(reshape),
        "output",
        output.name,
      );
      return { name: output.name, datatype: output.datatype, shape, bytes };
    });
  }

  #unbatched(output: Tensor, reshape: Reshape | undefined): Tensor {
    if (reshape)
      return {
        ...output,
        shape: this.#reshaped(output.shape, inverse(reshape), "output", output.name),
      };
    // A config cannot say "scalar": it has [1] where the graph has no dimension at all.
    if (output.shape.length > 0) return output;
    const declared = this.#model.config.output.find(({ name }) => name === output.name);
    return { ...output, shape: declared?.dims.map(() => 1) ?? [] };
  }

  #reshaped(shape: Shape, reshape: Reshape | undefined, direction: string, name: string): Shape {
    if (!reshape) return shape;
    const batch = this.#model.config.maxBatchSize > 0 ? shape.slice(0, 1) : [];
    const own = shape.slice(batch.length);
    if (shapeMatches(reshape.client, own)) return [...batch, ...substitute(reshape, own)];
    throw this.#internal(
      `${direction} '${name}': given shape ${shapeText(own)}, expected ${shapeText(reshape.client)} for its reshape`,
    );
  }

  #internal(text: string): InferenceError {
    return new InferenceError(StatusCode.Internal, `model '${this.#model.name}': ${text}`);
  }
}

type Reshapable = {
  readonly name: string;
  readonly dims: Shape;
  readonly reshape?: { readonly shape: Shape };
};

function reshapes(tensors: readonly Reshapable[]): ReadonlyMap<string, Reshape> {
  return new Map(
    tensors.flatMap(({ name, dims, reshape }) =>
      reshape ? [[name, { client: dims, model: reshape.shape }] as const] : [],
    ),
  );
}

function inverse({ client, model }: Reshape): Reshape {
  return { client: model, model: client };
}

/** The n-th variable dimension of the one side is the n-th of the other. */
function substitute({ client, model }: Reshape, own: Shape): Shape {
  const variable = own.filter((_, i) => client[i] === -1);
  let next = 0;
  return model.map((dimension) => (dimension === -1 ? (variable[next++] ?? 1) : dimension));
}
