import type { BinaryOutputs } from "./infer-json.ts";
import type { InferenceResponse } from "./inference.ts";
import type { Parameters } from "./parameters.ts";
import { placedBytes } from "./shared-memory.ts";
import { jsonElements } from "./tensor-to-json.ts";
import type { Tensor } from "./tensor.ts";

/** A response as HTTP carries it: JSON, and the binary tensors behind it. */
export interface InferReply {
  readonly head: string;
  /** Empty where all outputs stand in the JSON. */
  readonly tail: readonly Uint8Array[];
}

/** Writes a response; outputs that are wanted as binary data go behind the JSON as they are, those in shared memory nowhere. */
export function inferReply(response: InferenceResponse, binaryOutputs: BinaryOutputs): InferReply {
  const tail: Uint8Array[] = [];
  let outputs = "";
  for (const tensor of response.outputs) {
    const binary = binaryOutputs === "all" || binaryOutputs.has(tensor.name);
    if (binary && tensor.bytes !== placedBytes) tail.push(tensor.bytes);
    outputs += `${outputs && ","}${outputJson(tensor, binary)}`;
  }
  const { id, modelName, modelVersion, parameters } = response;
  const head =
    `{${id && `"id":${JSON.stringify(id)},`}"model_name":${JSON.stringify(modelName)},` +
    `"model_version":${JSON.stringify(modelVersion)},${parametersJson(parameters)}"outputs":[${outputs}]}`;
  return { head, tail };
}

function outputJson(tensor: Tensor, binary: boolean): string {
  const { name, datatype, shape, bytes } = tensor;
  const head = `{"name":${JSON.stringify(name)},"datatype":"${datatype}","shape":[${shape.join(",")}]`;
  if (bytes === placedBytes) return `${head}}`;
  return binary
    ? `${head},"parameters":{"binary_data_size":${bytes.length}}}`
    : `${head},"data":[${jsonElements(tensor)}]}`;
}

/** `"parameters":{…},`, or nothing where there are none. */
export function parametersJson(parameters: Parameters): string {
  if (parameters.size === 0) return "";
  const members = Array.from(parameters, ([name, value]) => {
    const text = typeof value === "bigint" ? String(value) : JSON.stringify(value);
    return `${JSON.stringify(name)}:${text}`;
  });
  return `"parameters":{${members.join(",")}},`;
}
