import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** The HTTP status of each outcome; a new outcome does not compile until it has one. */
export const httpStatus = {
  [StatusCode.Unknown]: 400,
  [StatusCode.Internal]: 500,
  [StatusCode.NotFound]: 404,
  [StatusCode.InvalidArg]: 400,
  [StatusCode.Unavailable]: 503,
  [StatusCode.Unsupported]: 501,
  [StatusCode.AlreadyExists]: 400,
  [StatusCode.Cancelled]: 400,
} as const satisfies Record<StatusCode, number>;

/** What the client is told of anything that was thrown; the log is told the rest, where there is one. */
export function clientError(cause: unknown, log: Logger): InferenceError {
  const error = InferenceError.from(cause);
  if (error.code === StatusCode.Internal && error.cause !== undefined) {
    log.error(error.message, { err: error.cause });
  }
  return error;
}

/** The body of every answer that is an error. */
export function errorJson(message: string): string {
  return JSON.stringify({ error: message });
}
