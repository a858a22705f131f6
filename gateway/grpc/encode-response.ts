import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import { parametersSize, writeParameters } from "./encode-parameters.ts";
import { fieldSize, stringSize, varintSize, WireWriter } from "./wire-writer.ts";

/** The bytes of the largest message: what the reference reads and writes, too. */
export const largestMessageBytes = 2 ** 31 - 1;

/** Before each message: whether it is compressed, and how long it is. */
export const prefixBytes = 5;

/** A tensor of this size costs less as a piece of its own than as a copy. */
const pieceBytes = 65_536;

/** A `ModelInferResponse` in one allocation of its exact size. */
export function encodeResponse(response: InferenceResponse): Buffer {
  const writer = new WireWriter(checkedSize(responseSize(response)));
  writeResponse(writer, response);
  return writer.bytes;
}

/** The same as a message of gRPC with its prefix, in pieces, because large tensors are not copied. */
export function encodeResponseFrame(response: InferenceResponse): readonly Uint8Array[] {
  const size = checkedSize(responseSize(response));
  const writer = new WireWriter(prefixBytes + size - largeBytes(response));
  writer.bytes[0] = 0;
  writer.position = writer.bytes.writeUInt32BE(size, 1);
  writeHead(writer, response);
  const pieces: Uint8Array[] = [];
  let start = 0;
  for (const { bytes } of response.outputs) {
    writer.head(0x32, bytes.length);
    if (bytes.length < pieceBytes) {
      writer.raw(bytes);
      continue;
    }
    pieces.push(writer.bytes.subarray(start, writer.position), bytes);
    start = writer.position;
  }
  if (pieces.length === 0) return [writer.bytes];
  if (start < writer.position) pieces.push(writer.bytes.subarray(start));
  return pieces;
}

/** A `ModelStreamInferResponse` with an answer. */
export function encodeStreamResponse(response: InferenceResponse): Buffer {
  const size = responseSize(response);
  const writer = new WireWriter(checkedSize(fieldSize(size)));
  writer.head(0x12, size);
  writeResponse(writer, response);
  return writer.bytes;
}

/** A `ModelStreamInferResponse` with an error, and a response without tensors that says which request it belongs to. */
export function encodeStreamError(message: string, response: InferenceResponse): Buffer {
  const size = responseSize(response);
  const writer = new WireWriter(stringSize(message) + fieldSize(size));
  writer.string(0x0a, message);
  writer.head(0x12, size);
  writeResponse(writer, response);
  return writer.bytes;
}

/** What goes out without a copy. */
function largeBytes({ outputs }: InferenceResponse): number {
  let sum = 0;
  for (const { bytes } of outputs) if (bytes.length >= pieceBytes) sum += bytes.length;
  return sum;
}

function checkedSize(size: number): number {
  if (size <= largestMessageBytes) return size;
  throw new InferenceError(
    StatusCode.InvalidArg,
    `Response has byte size ${size} which exceeds gRPC's byte size limit ${largestMessageBytes}.`,
  );
}

function responseSize(response: InferenceResponse): number {
  let size =
    optionalSize(response.modelName) +
    optionalSize(response.modelVersion) +
    optionalSize(response.id);
  if (response.parameters.size > 0) size += parametersSize(response.parameters);
  for (const output of response.outputs) {
    size += fieldSize(outputSize(output)) + fieldSize(output.bytes.length);
  }
  return size;
}

function writeResponse(writer: WireWriter, response: InferenceResponse): void {
  writeHead(writer, response);
  for (const { bytes } of response.outputs) {
    writer.head(0x32, bytes.length);
    writer.raw(bytes);
  }
}

/** All but the bytes of the tensors. */
function writeHead(writer: WireWriter, response: InferenceResponse): void {
  writeOptional(writer, 0x0a, response.modelName);
  writeOptional(writer, 0x12, response.modelVersion);
  writeOptional(writer, 0x1a, response.id);
  if (response.parameters.size > 0) writeParameters(writer, 0x22, response.parameters);
  for (const output of response.outputs) writeOutput(writer, output);
}

function outputSize({ name, datatype, shape }: Tensor): number {
  return (
    stringSize(name) + stringSize(datatype) + (shape.length > 0 ? fieldSize(shapeSize(shape)) : 0)
  );
}

function shapeSize(shape: readonly number[]): number {
  let size = 0;
  for (const dimension of shape) size += varintSize(dimension);
  return size;
}

function writeOutput(writer: WireWriter, output: Tensor): void {
  const { name, datatype, shape } = output;
  writer.head(0x2a, outputSize(output));
  writer.string(0x0a, name);
  writer.string(0x12, datatype);
  if (shape.length === 0) return;
  writer.head(0x1a, shapeSize(shape));
  for (const dimension of shape) writer.varint(dimension);
}

/** An empty text is the default, and is left out. */
function optionalSize(text: string): number {
  return text === "" ? 0 : stringSize(text);
}

function writeOptional(writer: WireWriter, tag: number, text: string): void {
  if (text !== "") writer.string(tag, text);
}
