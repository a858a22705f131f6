import { status } from "@grpc/grpc-js";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** How a failed call ends on the wire. */
export interface CallStatus {
  readonly code: status;
  readonly details: string;
}

/** The gRPC status of each outcome; a new outcome does not compile until it has one. */
const grpcStatus: Readonly<Record<StatusCode, status>> = {
  [StatusCode.Unknown]: status.UNKNOWN,
  [StatusCode.Internal]: status.INTERNAL,
  [StatusCode.NotFound]: status.NOT_FOUND,
  [StatusCode.InvalidArg]: status.INVALID_ARGUMENT,
  [StatusCode.Unavailable]: status.UNAVAILABLE,
  [StatusCode.Unsupported]: status.UNIMPLEMENTED,
  [StatusCode.AlreadyExists]: status.ALREADY_EXISTS,
  [StatusCode.Cancelled]: status.CANCELLED,
};

/** A client's header list holds 8 KiB by default, and each byte of a text may become three. */
const longestDetails = 2048;

/** What the client is told of anything that was thrown; the log is told the rest, where there is one. */
export function clientError(cause: unknown, log: Logger): InferenceError {
  const error = InferenceError.from(cause);
  if (error.code === StatusCode.Internal && error.cause !== undefined) {
    log.error(error.message, { err: error.cause });
  }
  return error;
}

/** How a call ends that failed so. */
export function callStatus(error: InferenceError): CallStatus {
  return { code: grpcStatus[error.code], details: headerText(error.message) };
}

/** A text that fits a header: not too long, and without half a surrogate pair, which has no encoding. */
function headerText(text: string): string {
  const cut = text.length > longestDetails ? `${text.slice(0, longestDetails)}…` : text;
  return cut.toWellFormed();
}
