import { lengthBytes, readLength } from "./bytes-tensor.ts";
import { type InferenceError, invalidArgument } from "./error.ts";
import { invalidRequest } from "./request-label.ts";
import type { InputRule } from "./request-rules.ts";
import { dimensionBound, elementCount, isDimension, shapeText } from "./shape.ts";
import type { Shape } from "./shape.ts";
import type { Tensor } from "./tensor.ts";

const batchingNote =
  "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each " +
  "input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting " +
  "max_batch_size to zero. See the model configuration docs for more info on max_batch_size.";

/** Checks that a tensor is of the input's datatype and shape, and that its bytes are as many as the shape says. */
export function checkTensor(rule: InputRule, tensor: Tensor, requestId: string): void {
  if (tensor.datatype !== rule.datatype) {
    throw invalidRequest(
      requestId,
      `inference input '${rule.name}' data-type is '${tensor.datatype}', but model '${rule.modelName}' expects '${rule.datatype}'`,
    );
  }
  checkShape(rule, tensor.shape, requestId);
  const elements = elementCount(tensor.shape);
  if (!Number.isSafeInteger(elements)) {
    throw invalidRequest(
      requestId,
      `${subject(rule)}: shape ${shapeText(tensor.shape)} has more elements than any tensor can hold`,
    );
  }
  if (rule.datatype === "BYTES") return checkElements(rule, elements, tensor.bytes, requestId);
  const expected = elements * rule.elementBytes;
  if (tensor.bytes.length !== expected) {
    throw invalidRequest(
      requestId,
      `input byte size mismatch for ${subject(rule)}. Expected ${expected}, got ${tensor.bytes.length}`,
    );
  }
}

function subject(rule: InputRule): string {
  return `input '${rule.name}' for model '${rule.modelName}'`;
}

function checkShape(rule: InputRule, given: Shape, requestId: string): void {
  const expected = rule.shape;
  let fits = given.length === expected.length;
  for (let i = 0; i < given.length; i += 1) {
    const dimension = given[i];
    if (!isDimension(dimension)) throw notADimension(rule, given, requestId);
    if (expected[i] !== -1 && expected[i] !== dimension) fits = false;
  }
  if (fits) return;
  throw invalidRequest(
    requestId,
    `unexpected shape for ${subject(rule)}. Expected ${shapeText(expected)}, got ${shapeText(given)}. ` +
      (rule.batched ? batchingNote : ""),
  );
}

function notADimension(rule: InputRule, given: Shape, requestId: string): InferenceError {
  const text = given.includes(-1)
    ? `All input dimensions should be specified for ${subject(rule)}, got ${shapeText(given)}`
    : `invalid shape for ${subject(rule)}: dimensions must be ${dimensionBound}, got ${shapeText(given)}`;
  return invalidRequest(requestId, text);
}

/** Walks the elements of a BYTES tensor: their lengths must add up, and there must be as many as the shape says. */
function checkElements(
  rule: InputRule,
  expected: number,
  bytes: Uint8Array,
  requestId: string,
): void {
  const name = `inference ${subject(rule)}`;
  let offset = 0;
  let count = 0;
  while (offset < bytes.length) {
    const left = bytes.length - offset - lengthBytes;
    if (left < 0) {
      throw invalidRequest(
        requestId,
        `incomplete string length indicator for ${name}, expecting 4 bytes but only ${left + lengthBytes} bytes available. ` +
          "Please make sure the string length indicator is in one buffer.",
      );
    }
    count += 1;
    if (count > expected) {
      throw invalidRequest(
        requestId,
        `unexpected number of string elements ${count} for ${name}, expecting ${expected}`,
      );
    }
    const length = readLength(bytes, offset);
    if (length > left) throw incompleteElement(rule, length, left);
    offset += lengthBytes + length;
  }
  if (count < expected) {
    throw invalidRequest(
      requestId,
      `expected ${expected} string elements for ${name}, got ${count}`,
    );
  }
}

/** The one text of these that the reference gives without the request's id. */
function incompleteElement(rule: InputRule, length: number, left: number): InferenceError {
  return invalidArgument(
    `incomplete string data for inference input '${rule.name}', expecting string of length ${length} but only ${left} bytes available`,
  );
}
