import { datatypeOfConfig } from "./datatype.ts";
import type { ServedModel } from "./served-model.ts";
import { InferenceError, invalidArgument } from "./error.ts";
import type { RequestTarget } from "./infer-json.ts";
import type { InferenceRequest, InferenceResponse } from "./inference.ts";
import { asString, isJsonObject, jsonError, membersOf } from "./json-access.ts";
import type { JsonDocument } from "./json-text.ts";
import type { ModelInput } from "./model-config.ts";
import { parametersJson } from "./infer-reply.ts";
import type { ParameterValue } from "./parameters.ts";
import { invalidRequest } from "./request-label.ts";
import { parameterValue } from "./request-parameters.ts";
import type { Shape } from "./shape.ts";
import { tensorFromJson } from "./tensor-from-json.ts";
import { jsonElements } from "./tensor-to-json.ts";
import type { Tensor } from "./tensor.ts";

const nested = "parameters";

/**
 * Reads a generate request, a flat object: a member named like an input of the model is that tensor, `id` is the
 * request's id, and all others are parameters, whether they stand at the top or within `parameters`.
 */
export function generateRequest(
  document: JsonDocument,
  model: ServedModel,
  target: RequestTarget,
): InferenceRequest {
  const reader = new GenerateReader(document, model, target);
  reader.read(document.root);
  return reader.request();
}

class GenerateReader {
  readonly #exact: boolean;
  readonly #target: RequestTarget;
  readonly #batching: boolean;
  readonly #modelInputs: ReadonlyMap<string, ModelInput>;
  readonly #inputs = new Map<string, Tensor>();
  readonly #parameters: Map<string, ParameterValue>;
  #id = "";

  constructor({ exact }: JsonDocument, { config }: ServedModel, target: RequestTarget) {
    this.#exact = exact;
    this.#target = target;
    this.#batching = config.maxBatchSize > 0;
    this.#modelInputs = new Map(config.input.map((input) => [input.name, input]));
    this.#parameters = new Map(target.forwarded);
  }

  read(root: unknown): void {
    for (const [name, value] of membersOf(root, "")) {
      if (name === "id") this.#id = asString(value, "Unable to parse 'id': ");
      else if (name === nested) this.#readNested(value);
      else this.#readMember(name, value);
    }
  }

  request(): InferenceRequest {
    return {
      modelName: this.#target.modelName,
      modelVersion: this.#target.modelVersion,
      id: this.#id,
      inputs: [...this.#inputs.values()],
      outputs: [],
      parameters: this.#parameters,
      priority: 0,
      timeoutMicroseconds: 0,
    };
  }

  #readNested(value: unknown): void {
    if (this.#modelInputs.has(nested)) {
      throw invalidArgument(
        `Keyword '${nested}' for nested schema also given as input tensor name`,
      );
    }
    if (!isJsonObject(value)) {
      throw jsonError(
        `Expected JSON object for keyword: '${nested}': attempt to access JSON non-object as object`,
      );
    }
    try {
      for (const [name, inner] of Object.entries(value)) this.#readMember(name, inner);
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
      throw new InferenceError(error.code, `Converting keyword: '${nested}': ${error.message}`, {
        cause: error,
      });
    }
  }

  #readMember(name: string, value: unknown): void {
    const input = this.#modelInputs.get(name);
    if (!input) {
      this.#parameters.set(name, parameterValue(name, value, this.#exact));
      return;
    }
    if (this.#inputs.has(name)) {
      throw invalidRequest(this.#id, `input '${name}' already exists in request`);
    }
    this.#inputs.set(name, this.#tensor(input, value));
  }

  #tensor(input: ModelInput, value: unknown): Tensor {
    const { name } = input;
    const datatype = datatypeOfConfig(input.dataType);
    if (!datatype)
      throw invalidArgument(`input '${name}' has unsupported datatype ${input.dataType}`);
    const data = Array.isArray(value) ? value : [value];
    const expected = this.#batching && !input.isShapeTensor ? [-1, ...input.dims] : input.dims;
    const shape = filledShape(expected, data.length);
    if (!shape) {
      throw invalidArgument(
        `The schema can not convert input '${name}' to tensor with proper shape`,
      );
    }
    const bytes = tensorFromJson({ datatype, shape, data, exact: this.#exact });
    return { name, datatype, shape, bytes };
  }
}

/** The expected shape with its last variable dimension made so large that the elements fill it, and the others 1. */
function filledShape(expected: Shape, elements: number): Shape | undefined {
  const fixed = expected.reduce((product, size) => (size === -1 ? product : product * size), 1);
  const variable = expected.lastIndexOf(-1);
  const count = elements / Math.max(fixed, 1);
  if (!Number.isInteger(count) || (variable === -1 && count !== 1)) return undefined;
  return expected.map((size, i) => {
    if (size !== -1) return size;
    return i === variable ? count : 1;
  });
}

/** Writes a response as a flat object: an output of one element is that element, a larger one is a flat list. */
export function generateReply(response: InferenceResponse): string {
  const outputs = response.outputs.map((tensor) => {
    const elements = jsonElements(tensor);
    const single = tensor.shape.every((size) => size === 1);
    return `${JSON.stringify(tensor.name)}:${single ? elements : `[${elements}]`},`;
  });
  const { id, modelName, modelVersion, parameters } = response;
  return (
    `{${outputs.join("")}${id && `"id":${JSON.stringify(id)},`}"model_name":${JSON.stringify(modelName)},` +
    `${parametersJson(parameters)}"model_version":${JSON.stringify(modelVersion)}}`
  );
}
