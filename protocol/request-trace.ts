import type { ColdStartMarks } from "./cold-start.ts";
import type { InferenceError } from "./error.ts";
import type { InferenceResponse } from "./inference.ts";
import type { ServedModel } from "./served-model.ts";
import type { ValidInferenceRequest } from "./valid-request.ts";

/** The moments of a request at the edge of the server, by the reference's names. */
export type EdgeMoment =
  | "HTTP_RECV_START"
  | "HTTP_RECV_END"
  | "HTTP_SEND_START"
  | "HTTP_SEND_END"
  | "GRPC_WAITREAD_START"
  | "GRPC_WAITREAD_END"
  | "GRPC_SEND_START"
  | "GRPC_SEND_END";

/** When an execution did what; `performance.now()` of this process, in milliseconds. */
export interface ComputeMoments {
  readonly startAt: number;
  readonly inputEndAt: number;
  readonly outputStartAt: number;
  readonly endAt: number;
}

/** What a trace tells of a request. */
export interface TracedRequest extends Pick<ValidInferenceRequest, "id" | "inputs"> {
  readonly model: Pick<ServedModel, "name" | "version">;
}

/**
 * Told of what a request goes through, where somebody wants to know. Each moment is `performance.now()` of this process,
 * in milliseconds.
 */
export interface RequestTrace {
  /** W3C trace context for whoever takes part in the request elsewhere; undefined when they have no part in the trace. */
  readonly traceparent: string | undefined;
  mark(moment: EdgeMoment, at: number): void;
  /** A scheduler takes the request. */
  enqueued(request: TracedRequest, at: number): void;
  /** A pool worker has the request: the end of its way through the queue between processes. */
  arrived(at: number): void;
  /** The request has waited until its version was started. */
  startedCold(marks: ColdStartMarks): void;
  /** An execution has answered the request, or a part of it. */
  computed(moments: ComputeMoments): void;
  responded(response: InferenceResponse, at: number): void;
  /** No further response comes: the request is over, well or with an error. */
  ended(at: number, error?: InferenceError): void;
  /** The trace of a request that this one consists of, which begins now. */
  step(at: number): RequestTrace;
  /** What the caller is answered instead of a response. */
  failed(error: InferenceError): void;
  /** Nothing more comes; what is told later is ignored. */
  close(at: number): void;
}
