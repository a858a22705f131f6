import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { Parameters, ParameterValue } from "../../../protocol/parameters.ts";
import type { Tensor } from "../../../protocol/tensor.ts";
import type { HeadReader } from "./head-reader.ts";
import type { TensorReader } from "./tensors.ts";

/** A model's answer to a request: an error of its own, or tensors. */
export type ModelResponse =
  | { readonly error: InferenceError }
  | { readonly outputs: readonly Tensor[]; readonly parameters: Parameters };

const codes: ReadonlyMap<string, StatusCode> = new Map(
  Object.values(StatusCode).map((code) => [code, code]),
);

/** Reads what the process says of a response: `error, parameters, tensors`. */
export function readResponse(fields: HeadReader, tensors: TensorReader): ModelResponse {
  const error = fields.optional((some) => readError(some.list()));
  const parameters = readParameters(fields);
  const outputs = tensors.tensors(fields);
  return error ? { error } : { outputs, parameters };
}

function readError(fields: HeadReader): InferenceError {
  const code = codes.get(fields.text()) ?? StatusCode.Internal;
  return new InferenceError(code, fields.text());
}

/** Reads the parameters of a response, or of a request that a model makes. */
export function readParameters(fields: HeadReader): Parameters {
  return new Map(fields.optional((some) => some.each((one) => readParameter(one.list()))));
}

function readParameter(fields: HeadReader): [string, ParameterValue] {
  return [fields.text(), readExact(fields)];
}

/** Reads a value that comes as kind and text, because JSON's numbers are not exact. */
export function readExact(fields: HeadReader): boolean | bigint | string {
  const kind = fields.text();
  const text = fields.text();
  if (kind === "i") return BigInt(text);
  return kind === "b" ? text === "True" : text;
}
