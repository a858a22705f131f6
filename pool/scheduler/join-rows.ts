import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { sameItemShape, shapeText } from "../../protocol/shape.ts";
import type { Tensor } from "../../protocol/tensor.ts";

/** Puts tensors behind each other along the first dimension; throws INTERNAL when they differ in another one. */
export function joinRows(parts: readonly Tensor[]): Tensor {
  const [first, ...others] = parts;
  if (!first) throw new Error("there is no tensor to join");
  const misfit = others.find((part) => !fitsBehind(first, part));
  if (misfit) {
    throw new InferenceError(
      StatusCode.Internal,
      `output '${first.name}': the parts of a split batch have shapes ${shapeText(first.shape)} and ` +
        `${shapeText(misfit.shape)}, expected them to differ in the first dimension only`,
    );
  }
  const rows = parts.reduce((sum, part) => sum + (part.shape[0] ?? 0), 0);
  return {
    ...first,
    shape: first.shape.with(0, rows),
    bytes: concatenate(parts.map((part) => part.bytes)),
  };
}

function fitsBehind(first: Tensor, other: Tensor): boolean {
  return first.datatype === other.datatype && sameItemShape(first.shape, other.shape);
}

function concatenate(chunks: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
  let offset = 0;
  for (const chunk of chunks) {
    whole.set(chunk, offset);
    offset += chunk.length;
  }
  return whole;
}
