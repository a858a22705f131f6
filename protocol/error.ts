/** The closed set of outcomes a call can fail with; each wire maps them to its own numbers at its own edge. */
export const StatusCode = {
  Unknown: "UNKNOWN",
  Internal: "INTERNAL",
  NotFound: "NOT_FOUND",
  InvalidArg: "INVALID_ARG",
  Unavailable: "UNAVAILABLE",
  Unsupported: "UNSUPPORTED",
  AlreadyExists: "ALREADY_EXISTS",
  Cancelled: "CANCELLED",
  Unauthenticated: "UNAUTHENTICATED",
  PermissionDenied: "PERMISSION_DENIED",
  ResourceExhausted: "RESOURCE_EXHAUSTED",
} as const;
export type StatusCode = (typeof StatusCode)[keyof typeof StatusCode];

export interface InferenceErrorOptions extends ErrorOptions {
  readonly retryAfterSeconds?: number;
  readonly quota?: QuotaState;
}

/** How much of their limits a caller has left, in the words of the `RateLimit` header fields. */
export interface QuotaState {
  /** `RateLimit-Policy`: what the limits are. */
  readonly policy: string;
  /** `RateLimit`: what is left of them. */
  readonly left: string;
}

/**
 * The only error that reaches a client: a code and a message that names subject, given and expected.
 * Paths, stacks and causes stay on this side of the wire.
 */
export class InferenceError extends Error {
  override readonly name = "InferenceError";
  readonly code: StatusCode;
  /** When another try has a chance; the client is told, where its protocol has a word for it. */
  readonly retryAfterSeconds: number | undefined;
  /** Set for refusals of callers who have limits. */
  readonly quota: QuotaState | undefined;

  constructor(code: StatusCode, message: string, options: InferenceErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.quota = options.quota;
  }

  /** Passes an InferenceError on; anything else becomes INTERNAL with a text that gives nothing away. */
  static from(cause: unknown): InferenceError {
    if (cause instanceof InferenceError) return cause;
    return new InferenceError(
      StatusCode.Internal,
      "internal error; the server's log has the cause",
      { cause },
    );
  }
}

/** The client's mistake: INVALID_ARG with a text that names subject, given and expected. */
export function invalidArgument(text: string, options?: ErrorOptions): InferenceError {
  return new InferenceError(StatusCode.InvalidArg, text, options);
}
