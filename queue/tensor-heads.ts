import type { Datatype } from "../protocol/datatype.ts";
import type { ParameterValue, Parameters } from "../protocol/parameters.ts";
import type { Shape } from "../protocol/shape.ts";
import type { Tensor } from "../protocol/tensor.ts";

/** A tensor in the head of a frame; its bytes lie behind the head, in the same order. */
export type TensorHead = readonly [
  name: string,
  datatype: Datatype,
  shape: Shape,
  byteLength: number,
];

export function tensorHead({ name, datatype, shape, bytes }: Tensor): TensorHead {
  return [name, datatype, shape, bytes.byteLength];
}

/** Whether both have the same heads. */
export function areAlike(left: readonly Tensor[], right: readonly Tensor[]): boolean {
  if (left.length !== right.length) return false;
  return left.every((tensor, i) => {
    const other = right[i];
    return (
      tensor.name === other?.name &&
      tensor.datatype === other.datatype &&
      tensor.bytes.byteLength === other.bytes.byteLength &&
      isSameShape(tensor.shape, other.shape)
    );
  });
}

function isSameShape(left: Shape, right: Shape): boolean {
  return left.length === right.length && left.every((dimension, i) => dimension === right[i]);
}

/** Lays the heads over the bytes that came behind them. */
export function tensorsOf(heads: readonly TensorHead[], bytes: Buffer): Tensor[] {
  let at = 0;
  return heads.map(([name, datatype, shape, byteLength]) => {
    const start = at;
    at += byteLength;
    return { name, datatype, shape, bytes: bytes.subarray(start, at) };
  });
}

/** About how large it is what comes with a request or an answer. */
export function contentBytes(
  tensors: readonly Tensor[],
  { id, parameters }: { readonly id: string; readonly parameters: Parameters },
): number {
  let size = id.length;
  for (const { bytes } of tensors) size += bytes.byteLength;
  for (const [name, value] of parameters) size += name.length + String(value).length;
  return size;
}

/** A parameter in a head: JSON knows neither 64-bit integers nor infinite doubles, so these travel as text. */
export type ParameterHead = readonly [name: string, kind: ParameterKind, value: string];
type ParameterKind = "bigint" | "boolean" | "number" | "string";

export function parameterHeads(parameters: Parameters): ParameterHead[] {
  return [...parameters].map(([name, value]) => [name, kindOf(value), String(value)]);
}

export function parametersOf(heads: readonly ParameterHead[]): Parameters {
  return new Map(heads.map(([name, kind, text]) => [name, valueOf(kind, text)]));
}

function kindOf(value: ParameterValue): ParameterKind {
  if (typeof value === "bigint") return "bigint";
  if (typeof value === "boolean") return "boolean";
  return typeof value === "number" ? "number" : "string";
}

function valueOf(kind: ParameterKind, text: string): ParameterValue {
  if (kind === "bigint") return BigInt(text);
  if (kind === "boolean") return text === "true";
  return kind === "number" ? Number(text) : text;
}
