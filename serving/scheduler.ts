import type { Call } from "../protocol/call.ts";
import type { InferenceError } from "../protocol/error.ts";
import type { InferenceResponse } from "../protocol/inference.ts";
import type { ValidInferenceRequest } from "../protocol/valid-request.ts";

/** Where the answers of one request go. After a final response or a failure nothing more may come. */
export interface ResponseSink {
  /** `undefined` with `final` ends a request that has no further answer. */
  send(response: InferenceResponse | undefined, final: boolean): void;
  /** Set while the reader is behind: who has more responses and can wait for it, does. */
  readonly room?: Promise<void> | undefined;
  fail(error: InferenceError): void;
}

/** A request on its way through a scheduler. */
export interface PendingRequest {
  readonly request: ValidInferenceRequest;
  readonly call: Call;
  readonly sink: ResponseSink;
  /** On the scheduler's clock, in milliseconds. */
  readonly enqueuedAt: number;
  /** Called in place of an answer by a model that is to be given the request again, where its scheduler does that. */
  readonly again?: () => void;
}

/** Decides when, and together with whom, a request runs. */
export interface Scheduler {
  /** Takes over a request; it is answered through its sink, whatever happens. Never throws. */
  enqueue(pending: PendingRequest): void;
  /** Requests taken and not answered yet. */
  readonly inflight: number;
  /** Takes no new request; resolves when every one it has is answered. */
  stop(): Promise<void>;
}

/** So many may wait for one version: beyond it, memory would grow for answers that come too late for anybody. */
export const maxWaiting = 65_536;
