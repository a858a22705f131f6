import { InferenceError, StatusCode } from "./error.ts";
import type { InferenceRequest, SequenceOptions } from "./inference.ts";
import { invalidRequest } from "./request-label.ts";
import type { RequestRules } from "./request-rules.ts";

const maxIdBytes = 128;

/** Checks that a model can be told the correlation id of a request, whose type its config chooses. */
export function checkSequence(
  { modelName, correlationId }: RequestRules,
  request: InferenceRequest,
  { id }: SequenceOptions,
): void {
  if (typeof id === "string" && new TextEncoder().encode(id).length > maxIdBytes) {
    throw new InferenceError(
      StatusCode.Unsupported,
      `string correlation ID cannot be longer than ${maxIdBytes} characters`,
    );
  }
  if (!id || !correlationId) return;
  const { name, datatype } = correlationId;
  const takesText = datatype === "BYTES";
  if (takesText === (typeof id === "string")) return;
  throw invalidRequest(
    request.id,
    `sequence batching control '${name}' data-type is '${takesText ? "UINT64" : "BYTES"}', but model ` +
      `'${modelName}' expects '${datatype}'`,
  );
}
