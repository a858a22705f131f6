import type { Call } from "../protocol/call.ts";
import type { InferenceError } from "../protocol/error.ts";
import type { EdgeMoment } from "../protocol/request-trace.ts";
import type { Tracer } from "../telemetry/tracer.ts";

/** What the moments of a call are named on each wire. */
interface EdgeMoments {
  readonly receiveStart: EdgeMoment;
  readonly receiveEnd: EdgeMoment;
  readonly sendStart: EdgeMoment;
  readonly sendEnd: EdgeMoment;
}

export const httpMoments: EdgeMoments = {
  receiveStart: "HTTP_RECV_START",
  receiveEnd: "HTTP_RECV_END",
  sendStart: "HTTP_SEND_START",
  sendEnd: "HTTP_SEND_END",
};

export const grpcMoments: EdgeMoments = {
  receiveStart: "GRPC_WAITREAD_START",
  receiveEnd: "GRPC_WAITREAD_END",
  sendStart: "GRPC_SEND_START",
  sendEnd: "GRPC_SEND_END",
};

/** Begins the trace of a call that has been received, if it is one that is traced. */
export function beginTrace(
  tracer: Tracer | undefined,
  call: Call,
  modelName: string,
  moments: EdgeMoments,
): void {
  if (!tracer?.active) return;
  const trace = tracer.begin(modelName, call);
  if (!trace) return;
  trace.mark(moments.receiveStart, call.receivedAt);
  trace.mark(moments.receiveEnd, performance.now());
  call.trace = trace;
}

/** The answer is ready, and is being written. */
export function traceSending({ trace }: Call, moments: EdgeMoments): void {
  trace?.mark(moments.sendStart, performance.now());
}

/** The request has failed, and the error is being written. */
export function traceFailure(call: Call, error: InferenceError, moments: EdgeMoments): void {
  call.trace?.failed(error);
  traceSending(call, moments);
}

/** The answer has been written, or nobody waits for it any more. */
export function endTrace(call: Call, moments: EdgeMoments): void {
  const { trace } = call;
  if (!trace) return;
  const now = performance.now();
  trace.mark(moments.sendEnd, now);
  trace.close(now);
}
