import { lengthBytes } from "../../protocol/bytes-tensor.ts";
import { byteSize } from "../../protocol/datatype.ts";
import type { Datatype } from "../../protocol/datatype.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { malformed, WireReader, WireType } from "./wire-reader.ts";

/** A field of `InferTensorContents`. */
interface ContentsField {
  /** The datatype that error texts call it. */
  readonly name: Datatype;
  /** How one element is laid out. */
  readonly wireType: WireType;
}

/** By field number. */
const fields: readonly (ContentsField | undefined)[] = [
  undefined,
  { name: "BOOL", wireType: WireType.Varint },
  { name: "INT32", wireType: WireType.Varint },
  { name: "INT64", wireType: WireType.Varint },
  { name: "UINT32", wireType: WireType.Varint },
  { name: "UINT64", wireType: WireType.Varint },
  { name: "FP32", wireType: WireType.Fixed32 },
  { name: "FP64", wireType: WireType.Fixed64 },
  { name: "BYTES", wireType: WireType.Bytes },
];

/** Which field holds the elements of a datatype; BF16 and FP16 have none. */
const fieldOf: Readonly<Record<Datatype, Datatype | undefined>> = {
  BOOL: "BOOL",
  INT8: "INT32",
  INT16: "INT32",
  INT32: "INT32",
  INT64: "INT64",
  UINT8: "UINT32",
  UINT16: "UINT32",
  UINT32: "UINT32",
  UINT64: "UINT64",
  FP32: "FP32",
  FP64: "FP64",
  BYTES: "BYTES",
  FP16: undefined,
  BF16: undefined,
};

/** Told of each stretch of elements, without tag and length: one element, or a packed field full of them. */
type Visit = (field: ContentsField, bytes: Buffer, start: number, end: number) => void;

/**
 * The elements of an encoded `InferTensorContents`, which may come in pieces, as a tensor's bytes: a view where the
 * encoding is the same, as for floats, and otherwise converted once. Integers that do not fit are truncated.
 * Throws INVALID_ARG when another field is filled than the datatype's, naming the subject.
 */
export function contentsBytes(
  pieces: readonly Buffer[],
  datatype: Datatype,
  subject: string,
): Buffer {
  const filled = new Set<Datatype>();
  let size = 0;
  let stretches = 0;
  let first: Buffer | undefined;
  visitElements(pieces, (field, bytes, start, end) => {
    filled.add(field.name);
    size += tensorSize(field, datatype, bytes, [start, end]);
    if (stretches === 0) first = bytes.subarray(start, end);
    stretches += 1;
  });
  checkFilled(filled, datatype, subject);
  const floats = datatype === "FP32" || datatype === "FP64";
  if (floats && first && stretches === 1) return first;
  return convert(pieces, datatype, Buffer.allocUnsafe(size));
}

function checkFilled(filled: ReadonlySet<Datatype>, datatype: Datatype, subject: string): void {
  const names = fields.flatMap((field) => (field && filled.has(field.name) ? [field.name] : []));
  const [name] = names;
  if (name === undefined) return;
  if (name !== fieldOf[datatype]) {
    throw unexpected(`${subject} of type '${name}', expected datatype '${datatype}'`);
  }
  if (names.length > 1) throw unexpected(`${subject}, binary data was already supplied.`);
}

function unexpected(text: string): InferenceError {
  return new InferenceError(StatusCode.InvalidArg, `unexpected explicit tensor data for ${text}`);
}

function visitElements(pieces: readonly Buffer[], visit: Visit): void {
  for (const piece of pieces) {
    const reader = new WireReader(piece);
    while (!reader.done) visitField(reader, visit);
  }
}

function visitField(reader: WireReader, visit: Visit): void {
  const tag = reader.tag();
  const field = fields[tag >>> 3];
  const wireType = tag & 7;
  if (field && wireType === WireType.Bytes) {
    const end = reader.payload();
    const start = reader.position;
    if (end > start || field.wireType === WireType.Bytes) visit(field, reader.bytes, start, end);
    reader.position = end;
    return;
  }
  const start = reader.position;
  reader.skip(tag);
  if (field && wireType === field.wireType) visit(field, reader.bytes, start, reader.position);
}

/** How many bytes a stretch of elements becomes. */
function tensorSize(
  field: ContentsField,
  datatype: Datatype,
  bytes: Buffer,
  [start, end]: readonly [number, number],
): number {
  if (field.wireType === WireType.Bytes) return lengthBytes + end - start;
  if (field.wireType !== WireType.Varint) {
    if ((end - start) % byteSize(field.name) !== 0) throw malformed();
    return end - start;
  }
  let count = 0;
  for (let i = start; i < end; i += 1) if ((bytes[i] ?? 0) < 0x80) count += 1;
  return count * byteSize(datatype);
}

function convert(pieces: readonly Buffer[], datatype: Datatype, tensor: Buffer): Buffer {
  let at = 0;
  visitElements(pieces, (field, bytes, start, end) => {
    if (field.wireType === WireType.Varint) {
      at = convertVarints(bytes.subarray(start, end), datatype, tensor, at);
      return;
    }
    if (field.wireType === WireType.Bytes) at = tensor.writeUInt32LE(end - start, at);
    at += bytes.copy(tensor, at, start, end);
  });
  return tensor;
}

/** Returns where the next element goes. */
function convertVarints(
  varints: Buffer,
  datatype: Datatype,
  tensor: Buffer,
  offset: number,
): number {
  const reader = new WireReader(varints);
  const width = byteSize(datatype);
  let at = offset;
  for (; !reader.done; at += width) {
    if (width === 8) tensor.writeBigUInt64LE(reader.uint64(), at);
    else if (datatype === "BOOL") tensor[at] = reader.bool() ? 1 : 0;
    else tensor.writeUIntLE(reader.uint32() % 2 ** (8 * width), at, width);
  }
  return at;
}
