import { type Metadata, status } from "@grpc/grpc-js";
import { type InferenceError, StatusCode } from "../../protocol/error.ts";
import { retryMetadata } from "./retry-info.ts";

/** How a failed call ends on the wire. */
export interface CallStatus {
  readonly code: status;
  readonly details: string;
  /** Trailing metadata. */
  readonly metadata?: Metadata;
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
  [StatusCode.ResourceExhausted]: status.RESOURCE_EXHAUSTED,
};

/** A client's header list holds 8 KiB by default, and each byte of a text may become three. */
const longestDetails = 2048;
/** Where the text stands there twice. */
const longestRetryDetails = 512;

/** How a call ends that failed so. */
export function callStatus({
  code: outcome,
  message,
  retryAfterSeconds,
}: InferenceError): CallStatus {
  const code = grpcStatus[outcome];
  if (retryAfterSeconds === undefined)
    return { code, details: headerText(message, longestDetails) };
  const details = headerText(message, longestRetryDetails);
  return { code, details, metadata: retryMetadata({ code, details }, retryAfterSeconds) };
}

/** A text that fits a header: not too long, and without half a surrogate pair, which has no encoding. */
function headerText(text: string, longest: number): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return cut.toWellFormed();
}
