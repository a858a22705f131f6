import { isDatatype } from "../protocol/datatype.ts";
import type { Parameters, ParameterValue } from "../protocol/parameters.ts";
import type { Tensor } from "../protocol/tensor.ts";
import type { CachedResponse } from "./cached-response.ts";

/** An answer that is kept outside of this process. */
export interface StoredResponse {
  readonly response: CachedResponse;
  /** From when on nobody may use it; milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** JSON knows neither 64-bit integers nor infinite doubles, so values travel as texts. */
type ParameterHead = readonly [name: string, type: string, value: string];
type TensorHead = readonly [name: string, datatype: string, shape: number[], bytes: number];

interface Head {
  readonly model: string;
  readonly version: string;
  readonly expiresAt: number;
  readonly outputs: readonly TensorHead[];
  readonly parameters: readonly ParameterHead[];
}

const lengthBytes = 4;

/** An answer as one run of bytes: `<length of the head, uint32 le><head as JSON><tensors…>`. */
export function encodeResponse({ response, expiresAt }: StoredResponse): Buffer {
  const { modelName, modelVersion, outputs, parameters } = response;
  const head: Head = {
    model: modelName,
    version: modelVersion,
    expiresAt,
    outputs: outputs.map(({ name, datatype, shape, bytes }) => [
      name,
      datatype,
      [...shape],
      bytes.byteLength,
    ]),
    parameters: Array.from(parameters, ([name, value]) => [name, typeof value, String(value)]),
  };
  const text = Buffer.from(JSON.stringify(head));
  const length = Buffer.allocUnsafe(lengthBytes);
  length.writeUInt32LE(text.byteLength);
  return Buffer.concat([length, text, ...outputs.map(({ bytes }) => bytes)]);
}

/** The same again, its tensors views on the frame; throws for bytes that are no such frame. */
export function decodeResponse(frame: Buffer): StoredResponse {
  const end = lengthBytes + frame.readUInt32LE(0);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by the function above; what differs throws below
  const head = JSON.parse(frame.toString("utf8", lengthBytes, end)) as Head;
  const response = {
    modelName: head.model,
    modelVersion: head.version,
    outputs: tensorsOf(head.outputs, frame.subarray(end)),
    parameters: parametersOf(head.parameters),
  };
  return { response, expiresAt: head.expiresAt };
}

function tensorsOf(heads: readonly TensorHead[], bytes: Buffer): readonly Tensor[] {
  let at = 0;
  const tensors = heads.map(([name, datatype, shape, byteLength]) => {
    if (!isDatatype(datatype)) throw new Error("not a datatype");
    const start = at;
    at += byteLength;
    return { name, datatype, shape, bytes: bytes.subarray(start, at) };
  });
  if (at !== bytes.byteLength) throw new Error("bytes are missing, or too many");
  return tensors;
}

function parametersOf(heads: readonly ParameterHead[]): Parameters {
  return new Map(heads.map(([name, type, text]) => [name, valueOf(type, text)]));
}

function valueOf(type: string, text: string): ParameterValue {
  if (type === "bigint") return BigInt(text);
  if (type === "boolean") return text === "true";
  return type === "number" ? Number(text) : text;
}
