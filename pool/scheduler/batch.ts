import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import type { BatchOutput } from "../../protocol/model-config.ts";
import { noParameters } from "../../protocol/parameters.ts";
import {
  elementCount,
  sameItemShape,
  shapeMatches,
  shapeText,
  type Shape,
} from "../../protocol/shape.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { ValidInferenceRequest } from "../../protocol/valid-request.ts";
import type { TensorParts } from "../instance/messages.ts";
import { batchInputs } from "./batch-inputs.ts";
import { inverse, type Reshape, reshapes, substitute } from "./reshape.ts";
import { cutRows } from "./rows.ts";
import { scatterOutput } from "./scatter-output.ts";

/**
 * Puts requests together into one run of a model and takes its outputs apart again: concatenation along the first
 * dimension, with the config's `reshape` applied on the way in and undone on the way out. Ragged inputs lose their shapes,
 * which the model learns from `batch_input` and the outputs get back by `batch_output`.
 */
export class Batcher {
  readonly #model: ServedModel;
  readonly #inputReshapes: ReadonlyMap<string, Reshape>;
  readonly #outputReshapes: ReadonlyMap<string, Reshape>;
  readonly #allOutputs: readonly string[];
  readonly #ragged: ReadonlySet<string>;
  readonly #scattered: ReadonlyMap<string, BatchOutput>;

  constructor(model: ServedModel) {
    const { input, batchOutput } = model.config;
    this.#model = model;
    this.#ragged = new Set(input.flatMap((one) => (one.allowRaggedBatch ? one.name : [])));
    this.#scattered = new Map(
      batchOutput.flatMap((one) => one.targetName.map((name) => [name, one] as const)),
    );
    this.#inputReshapes = reshapes(model.config.input);
    this.#outputReshapes = reshapes(model.config.output);
    this.#allOutputs = model.config.output.map(({ name }) => name);
  }

  /** One tensor for each input of the requests, still in parts. All requests must have the same inputs. */
  merge(requests: readonly ValidInferenceRequest[]): readonly TensorParts[] {
    const [first, ...others] = requests;
    if (!first) return [];
    const inputs = first.inputs.map((input) => {
      const tensors = [input, ...others.map((request) => this.#sameInput(request, first, input))];
      return {
        name: input.name,
        datatype: input.datatype,
        shape: this.#ragged.has(input.name)
          ? [tensors.reduce((sum, { shape }) => sum + elementCount(shape), 0)]
          : this.#modelShape({ name: input.name, shape: this.#batchShape(tensors) }),
        parts: tensors.map(({ bytes }) => bytes),
      };
    });
    const { batchInput } = this.#model.config;
    if (batchInput.length === 0) return inputs;
    const shapesOf = (source: string): readonly Shape[] =>
      this.#sources(requests, source).map((input) => this.#modelShape(input));
    return [...inputs, ...batchInputs(batchInput, shapesOf)];
  }

  #modelShape({ name, shape }: Pick<Tensor, "name" | "shape">): Shape {
    return this.#reshaped(shape, this.#inputReshapes.get(name), "input", name);
  }

  #sources(requests: readonly ValidInferenceRequest[], source: string): readonly Tensor[] {
    return requests.map(({ inputs }) => {
      const found = inputs.find(({ name }) => name === source);
      if (found) return found;
      throw this.#internal(`a request lacks input '${source}', by which its batch is described`);
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
    const shares = new Map(outputs.map((output) => [output.name, this.#shares(output, requests)]));
    return requests.map((request, i) => ({
      modelName: this.#model.name,
      modelVersion: this.#model.version,
      id: request.id,
      parameters: noParameters,
      outputs: this.outputs([request]).flatMap((name) => shares.get(name)?.[i] ?? []),
    }));
  }

  #shares(output: Tensor, requests: readonly ValidInferenceRequest[]): readonly Tensor[] {
    const scatter = this.#scattered.get(output.name);
    if (scatter) return this.#scatter(output, scatter, requests);
    const reshape = this.#outputReshapes.get(output.name);
    if (this.#model.config.maxBatchSize === 0) return [this.#unbatched(output, reshape)];
    const sizes = requests.map(({ batchSize }) => batchSize);
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

  #scatter(
    output: Tensor,
    { sourceInput: [source = ""] }: BatchOutput,
    requests: readonly ValidInferenceRequest[],
  ): readonly Tensor[] {
    const { config } = this.#model;
    const dims = config.output.find(({ name }) => name === output.name)?.dims ?? [];
    const stated = config.maxBatchSize > 0 ? [-1, ...dims] : dims;
    const given = this.#sources(requests, source).map(({ shape }) => shape);
    const pieces = scatterOutput(output, stated, given);
    if (pieces) return pieces;
    throw this.#internal(
      `output '${output.name}': given shape ${shapeText(output.shape)}, expected a piece for each request with the shape ` +
        `of its input '${source}'`,
    );
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
