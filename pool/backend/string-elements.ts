import { joinBytesElements, lengthBytes } from "../../protocol/bytes-tensor.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { Tensor } from "../../protocol/tensor.ts";

// A byte order mark belongs to the string: without `ignoreBOM` the decoder would eat it.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/**
 * The elements of a BYTES tensor as the strings that ONNX knows. What ONNX cannot hold is refused, never altered:
 * throws INVALID_ARG for bytes that are not UTF-8, and for a NUL, at which the runtime would cut the string off.
 */
export function decodeStrings(tensor: Tensor): readonly string[] {
  const { bytes } = tensor;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const strings: string[] = [];
  for (let at = 0; at < bytes.byteLength;) {
    if (at + lengthBytes > bytes.byteLength) throw refusal(tensor, strings.length, "is cut off");
    const end = at + lengthBytes + view.getUint32(at, true);
    if (end > bytes.byteLength) throw refusal(tensor, strings.length, "is cut off");
    strings.push(decodeString(tensor, strings.length, bytes.subarray(at + lengthBytes, end)));
    at = end;
  }
  return strings;
}

function decodeString(tensor: Tensor, index: number, bytes: Uint8Array): string {
  if (bytes.includes(0))
    throw refusal(tensor, index, "contains a NUL byte, which an ONNX string cannot hold");
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    throw refusal(tensor, index, "is not valid UTF-8, which an ONNX string has to be", cause);
  }
}

function refusal(tensor: Tensor, index: number, problem: string, cause?: unknown): InferenceError {
  return new InferenceError(
    StatusCode.InvalidArg,
    `input '${tensor.name}': element ${index} ${problem}`,
    { cause },
  );
}

/** Strings as BYTES elements: each its length and its UTF-8. */
export function encodeStrings(strings: readonly string[]): Uint8Array {
  return joinBytesElements(strings.map((text) => encoder.encode(text)));
}
