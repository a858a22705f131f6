import { type InferenceError, invalidArgument } from "../../protocol/error.ts";
import { startMissing } from "../../serving/refusal.ts";
import type { PendingRequest } from "../../serving/scheduler.ts";
import { type Sequence, sequenceKey } from "./sequence.ts";

/** Why a request is none that could run in a sequence, in the reference's words; it counts no failure either. */
export function sequenceError(
  { request: { modelName, batchSize, sequence }, call }: PendingRequest,
  open: ReadonlyMap<string, Sequence>,
): InferenceError | undefined {
  if (batchSize > 1) {
    return invalidArgument(
      `inference request to model '${modelName}' must specify batch-size 1 due to requirements of sequence batcher`,
    );
  }
  if (!sequence?.id) {
    return invalidArgument(
      `inference request to model '${modelName}' must specify a non-zero or non-empty correlation ID`,
    );
  }
  if (sequence.start || open.has(sequenceKey(call.principal, sequence.id))) return undefined;
  return startMissing(modelName, sequence.id);
}
