import { InferenceError, StatusCode } from "../protocol/error.ts";

/** What callers are told while Redis cannot be reached. */
export function queueAway(cause: unknown): InferenceError {
  return new InferenceError(
    StatusCode.Unavailable,
    "the request queue cannot be reached; try again in a moment",
    { cause, retryAfterSeconds: 1 },
  );
}
