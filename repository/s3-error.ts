import { InferenceError, StatusCode } from "../protocol/error.ts";

/** What is wrong with an answer of S3 that says of itself that it is fine. */
export class S3TransferError extends Error {
  override readonly name: "Changed" | "ChecksumMismatch" | "Stalled" | "Truncated";

  constructor(name: S3TransferError["name"], message: string) {
    super(message);
    this.name = name;
  }
}

const transientCodes: ReadonlySet<string> = new Set([
  "ChecksumMismatch",
  "EAI_AGAIN",
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "ENOTFOUND",
  "EPIPE",
  "ERR_STREAM_PREMATURE_CLOSE",
  "ETIMEDOUT",
  "NetworkingError",
  "RequestTimeout",
  "RequestTimeTooSkewed",
  "SlowDown",
  "ThrottlingException",
  "TimeoutError",
]);
/** Of the disk that files are written to. */
const diskCodes: ReadonlySet<string> = new Set([
  "EACCES",
  "EDQUOT",
  "EFBIG",
  "EIO",
  "EMFILE",
  "ENFILE",
  "ENOSPC",
  "EROFS",
]);
const transientStatus: ReadonlySet<number> = new Set([408, 429]);
/** The object is not the one that was listed: gone, replaced, or shorter. */
const changedStatus: ReadonlySet<number> = new Set([404, 412, 416]);

/** True when the same request may succeed a little later. */
export function isTransient(error: unknown): boolean {
  if (error instanceof S3TransferError) return error.name !== "Changed";
  const { name, code, status } = factsOf(error);
  if (status >= 500 || transientStatus.has(status)) return true;
  return transientCodes.has(name) || transientCodes.has(code);
}

/** True for an error that is not S3's. */
export function isDiskError(error: unknown): boolean {
  return diskCodes.has(factsOf(error).code);
}

/** True when there is no such object: a bucket that is missing is another matter. */
export function isMissing(error: unknown): boolean {
  return factsOf(error).name === "NoSuchKey";
}

/** True when the object is not in the state that a write asked for: another one was quicker. */
export function isPrecondition(error: unknown): boolean {
  const { name, status } = factsOf(error);
  return status === 412 || status === 409 || name === "PreconditionFailed";
}

/** An error of the SDK as one for users: it tells S3's word for it, and neither keys nor hosts. */
export function s3Failure(subject: string, cause: unknown, what = "read from"): InferenceError {
  if (cause instanceof InferenceError) return cause;
  const text = `${subject}: cannot be ${what} S3 (${reasonOf(cause)})`;
  return isTransient(cause)
    ? new InferenceError(StatusCode.Unavailable, text, { cause, retryAfterSeconds: 1 })
    : new InferenceError(StatusCode.Internal, text, { cause });
}

/** The same for an object whose listing promised that it is there: then "not found" means that it was changed. */
export function s3ObjectFailure(subject: string, cause: unknown): InferenceError {
  const { name, status } = factsOf(cause);
  if (name !== "Changed" && !changedStatus.has(status)) return s3Failure(subject, cause);
  return new InferenceError(
    StatusCode.Unavailable,
    `${subject}: changed in S3 while it was fetched; another load takes the new files`,
    { cause },
  );
}

function reasonOf(error: unknown): string {
  const { name, code, status } = factsOf(error);
  if (name === "CredentialsProviderError") return "no credentials found";
  if (error instanceof Error && error.message === "Region is missing")
    return "no region found; --s3-region names one";
  const word = [name, code].find((text) => /^\w{1,64}$/.test(text) && text !== "Error");
  return word ?? (status > 0 ? `HTTP ${status}` : "unknown error");
}

interface Facts {
  readonly name: string;
  readonly code: string;
  /** 0 when there was no answer. */
  readonly status: number;
}

function factsOf(error: unknown): Facts {
  if (!(error instanceof Error)) return { name: "", code: "", status: 0 };
  const code = "code" in error ? String(error.code) : "";
  const metadata: unknown = "$metadata" in error ? error.$metadata : undefined;
  const status =
    typeof metadata === "object" && metadata !== null && "httpStatusCode" in metadata
      ? Number(metadata.httpStatusCode)
      : 0;
  // The SDK's own check of a whole object has no name.
  const name = error.message.startsWith("Checksum mismatch") ? "ChecksumMismatch" : error.name;
  return { name, code, status };
}
