import { status } from "@grpc/grpc-js";
import { type InferenceError, StatusCode } from "../../protocol/error.ts";

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
  [StatusCode.Unauthenticated]: status.UNAUTHENTICATED,
  [StatusCode.PermissionDenied]: status.PERMISSION_DENIED,
};

/** A client's header list holds 8 KiB by default, and each byte of a text may become three. */
const longestDetails = 2048;

/** How a call ends that failed so. */
export function callStatus(error: InferenceError): CallStatus {
  return { code: grpcStatus[error.code], details: headerText(error.message) };
}

/** A text that fits a header: not too long, and without half a surrogate pair, which has no encoding. */
function headerText(text: string): string {
  const cut = text.length > longestDetails ? `${text.slice(0, longestDetails)}…` : text;
  return cut.toWellFormed();
}
