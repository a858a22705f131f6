import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { elementCount } from "../../protocol/shape.ts";
import type { Tensor } from "../../protocol/tensor.ts";

const lengthBytes = 4;

/**
 * Cuts a tensor along its first dimension into runs of so many rows, as views on its bytes.
 * The sizes must add up to the dimension. Throws INTERNAL when BYTES elements end too early.
 */
export function cutRows(tensor: Tensor, sizes: readonly number[]): readonly Uint8Array[] {
  if (sizes.length === 1) return [tensor.bytes];
  return tensor.datatype === "BYTES" ? cutElements(tensor, sizes) : cutEvenly(tensor.bytes, sizes);
}

function cutEvenly(bytes: Uint8Array, sizes: readonly number[]): readonly Uint8Array[] {
  const rows = sizes.reduce((sum, size) => sum + size, 0);
  const rowBytes = rows === 0 ? 0 : bytes.byteLength / rows;
  let start = 0;
  return sizes.map((size) => {
    const end = start + size * rowBytes;
    const cut = bytes.subarray(start, end);
    start = end;
    return cut;
  });
}

function cutElements(
  { name, shape, bytes }: Tensor,
  sizes: readonly number[],
): readonly Uint8Array[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const rowElements = elementCount(shape.slice(1));
  let start = 0;
  return sizes.map((size) => {
    let end = start;
    for (let i = 0; i < size * rowElements; i++) {
      if (end + lengthBytes > bytes.byteLength) {
        throw new InferenceError(
          StatusCode.Internal,
          `output '${name}': BYTES element ${i} is cut off`,
        );
      }
      end += lengthBytes + view.getUint32(end, true);
    }
    const cut = bytes.subarray(start, end);
    start = end;
    return cut;
  });
}
