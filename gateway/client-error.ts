import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { Logger } from "../telemetry/logger.ts";

/** What the client is told of anything that was thrown; the log is told the rest, where there is one. */
export function clientError(cause: unknown, log: Logger): InferenceError {
  const error = InferenceError.from(cause);
  if (error.code === StatusCode.Internal && error.cause !== undefined) {
    log.error(error.message, { err: error.cause });
  }
  return error;
}
