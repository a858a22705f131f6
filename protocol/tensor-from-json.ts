import { joinBytesElements } from "./bytes-tensor.ts";
import type { Datatype } from "./datatype.ts";
import { maxNesting } from "./exact-json-reader.ts";
import { bf16Bits, fp16Bits } from "./half-float.ts";
import { asArray, asBoolean, asString, jsonError, wrongType } from "./json-access.ts";
import { demandExactNumbers } from "./json-text.ts";
import { elementCount } from "./shape.ts";
import type { Shape } from "./shape.ts";

const subject = "Unable to parse 'data': ";

/** What the `data` field of an input says its tensor is. */
export interface JsonTensor {
  readonly datatype: Datatype;
  readonly shape: Shape;
  /** Nested as the shape is, or flat. */
  readonly data: unknown;
  /** Whether integers beyond 2^53 came as bigints, or may have been rounded. */
  readonly exact: boolean;
}

/** The bytes of a tensor whose elements stand in JSON: numbers, booleans or strings, row by row. */
export function tensorFromJson({ datatype, shape, data, exact }: JsonTensor): Uint8Array {
  const array = asArray(data, subject);
  const values = array.some(Array.isArray) ? array.flat(maxNesting) : array;
  if (values.length !== elementCount(shape)) {
    throw jsonError(`${subject}Shape does not match true shape of 'data' field`);
  }
  return encoders[datatype](values, exact);
}

type Encoder = (values: readonly unknown[], exact: boolean) => Uint8Array;

const encoders: Record<Datatype, Encoder> = {
  BOOL: encodeBooleans,
  UINT8: (values, exact) => encodeIntegers(values, new Uint8Array(values.length), unsigned, exact),
  UINT16: (values, exact) =>
    encodeIntegers(values, new Uint16Array(values.length), unsigned, exact),
  UINT32: (values, exact) =>
    encodeIntegers(values, new Uint32Array(values.length), unsigned, exact),
  UINT64: (values, exact) => encodeWideIntegers(values, unsigned, exact),
  INT8: (values, exact) => encodeIntegers(values, new Int8Array(values.length), signed, exact),
  INT16: (values, exact) => encodeIntegers(values, new Int16Array(values.length), signed, exact),
  INT32: (values, exact) => encodeIntegers(values, new Int32Array(values.length), signed, exact),
  INT64: (values, exact) => encodeWideIntegers(values, signed, exact),
  FP16: (values, exact) => encodeHalves(values, fp16Bits, exact),
  FP32: (values, exact) => encodeFloats(values, new Float32Array(values.length), exact),
  FP64: (values, exact) => encodeFloats(values, new Float64Array(values.length), exact),
  BYTES: encodeStrings,
  BF16: (values, exact) => encodeHalves(values, bf16Bits, exact),
};

function bytesOf(array: ArrayBufferView<ArrayBuffer>): Uint8Array {
  return new Uint8Array(array.buffer);
}

function encodeBooleans(values: readonly unknown[]): Uint8Array {
  return Uint8Array.from(values, (value) => Number(asBoolean(value, subject)));
}

function encodeStrings(values: readonly unknown[]): Uint8Array {
  const encoder = new TextEncoder();
  const elements = values.map((value) => {
    const text = asString(value, "Unable to parse JSON bytes array: ");
    if (text.isWellFormed()) return encoder.encode(text);
    throw jsonError("Unable to parse JSON bytes array: The surrogate pair in string is invalid.");
  });
  return joinBytesElements(elements);
}

function encodeFloats(
  values: readonly unknown[],
  out: Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer>,
  exact: boolean,
): Uint8Array {
  // Stays 0 while all are finite: one test for all of them, after the loop.
  let infinite = 0;
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i];
    if (typeof value === "number") {
      out[i] = value;
      infinite += value - value;
    } else out[i] = rareNumber(value);
  }
  // JSON.parse makes Infinity of a number that is too big; the exact reader refuses it.
  if (infinite !== 0 && !exact) demandExactNumbers();
  return bytesOf(out);
}

function encodeHalves(
  values: readonly unknown[],
  bits: (value: number) => number,
  exact: boolean,
): Uint8Array {
  const doubles = new Float64Array(values.length);
  encodeFloats(values, doubles, exact);
  return bytesOf(Uint16Array.from(doubles, bits));
}

function rareNumber(value: unknown): number {
  if (typeof value === "bigint") return Number(value);
  throw wrongType(subject, "number", "double");
}

interface IntegerRange {
  readonly name: string;
  readonly least: bigint;
  readonly most: bigint;
}

const signed: IntegerRange = { name: "signed-integer", least: -(2n ** 63n), most: 2n ** 63n - 1n };
const unsigned: IntegerRange = { name: "unsigned-integer", least: 0n, most: 2n ** 64n - 1n };

type NarrowArray =
  | Uint8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Int8Array<ArrayBuffer>
  | Int16Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>;

/** Whole numbers that fit 64 bits are cut to the element's size, as the reference does it. */
function encodeIntegers(
  values: readonly unknown[],
  out: NarrowArray,
  range: IntegerRange,
  exact: boolean,
): Uint8Array {
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i];
    out[i] = isPlain(value, range)
      ? value
      : Number(BigInt.asIntN(32, wideInteger(value, range, exact)));
  }
  return bytesOf(out);
}

function encodeWideIntegers(
  values: readonly unknown[],
  range: IntegerRange,
  exact: boolean,
): Uint8Array {
  const out = new BigInt64Array(values.length);
  const halves = new Int32Array(out.buffer);
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i];
    if (isPlain(value, range)) {
      halves[2 * i] = value;
      halves[2 * i + 1] = Math.floor(value / 2 ** 32);
    } else out[i] = wideInteger(value, range, exact);
  }
  return bytesOf(out);
}

function isPlain(value: unknown, range: IntegerRange): value is number {
  return Number.isSafeInteger(value) && (range === signed || Number(value) >= 0);
}

function wideInteger(value: unknown, range: IntegerRange, exact: boolean): bigint {
  if (typeof value === "bigint" && value >= range.least && value <= range.most) return value;
  const rounded = Number.isInteger(value) && !Number.isSafeInteger(value);
  if (rounded && !exact) demandExactNumbers();
  throw wrongType(subject, range.name, range.name);
}
