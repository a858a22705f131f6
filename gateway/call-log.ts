import { anonymous, type Principal } from "../protocol/call.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { LogFields, Logger } from "../telemetry/logger.ts";

/** A call as the log tells of it; made only where there is something to tell. */
export interface CallFields {
  readonly transport: "http" | "grpc";
  /** As in `POST /v2/models/resnet/infer` or `/inference.GRPCInferenceService/ModelInfer`. */
  readonly method: string;
  /** "" where the client chose none; undefined until the request has been read, which may fail. */
  readonly requestId: string | undefined;
  readonly model: string;
  /** As the client asked for it. */
  readonly version: string;
  readonly principal: Principal;
  /** `performance.now()` when the call came, in milliseconds. */
  readonly receivedAt: number;
}

/** Texts that clients choose; nobody looks for more of them in a log. */
const longestText = 256;

/** Tells of a call that went well. Ask the log's `verboseLevel` first: making the fields costs something. */
export function logAnswered(log: Logger, call: CallFields): void {
  log.verbose(1, "call", { ...identity(call), outcome: "OK", ...duration(call) });
}

/** What the client is told of anything that was thrown; the log is told all of it where it is our fault. */
export function clientError(cause: unknown, log: Logger, call: CallFields): InferenceError {
  const error = InferenceError.from(cause);
  const { code, message } = error;
  if (isFault(error, call)) {
    log.error(message, {
      ...identity(call),
      ...(error.cause !== undefined && { err: error.cause }),
    });
  }
  if (log.verboseLevel > 0) {
    log.verbose(1, "call", {
      ...identity(call),
      outcome: code,
      error: cut(message),
      ...duration(call),
    });
  }
  return error;
}

/**
 * True for INTERNAL errors of our making. What cannot be read is the client's doing, whatever the reference calls it; a
 * cause that is an error of ours was told of where it happened, as with a model that does not load.
 */
function isFault({ code, cause }: InferenceError, { requestId }: CallFields): boolean {
  if (code !== StatusCode.Internal || cause instanceof InferenceError) return false;
  return cause !== undefined || requestId !== undefined;
}

function identity({ principal, ...call }: CallFields): LogFields {
  const { transport, method, requestId, model, version } = call;
  return {
    transport,
    method: cut(method),
    ...(requestId && { requestId: cut(requestId) }),
    ...(model !== "" && { model: cut(model) }),
    ...(version !== "" && { version: cut(version) }),
    ...(principal.name !== anonymous.name && {
      principal: principal.name,
      ...(principal.title !== undefined && { principalTitle: cut(principal.title) }),
      tenant: principal.tenant,
    }),
  };
}

function duration({ receivedAt }: CallFields): LogFields {
  return { microseconds: Math.round((performance.now() - receivedAt) * 1000) };
}

function cut(text: string): string {
  return text.length > longestText ? `${text.slice(0, longestText)}…` : text;
}
