import type { InferenceError } from "../protocol/error.ts";
import type { InferenceResponse } from "../protocol/inference.ts";
import type { RequestTrace } from "../protocol/request-trace.ts";
import type { PendingRequest, ResponseSink } from "./scheduler.ts";

/** The same request on its way into a scheduler; where it is traced, its trace is told of that and of its answers. */
export function tracedRequest(pending: PendingRequest): PendingRequest {
  const { request, call, sink, enqueuedAt } = pending;
  const { trace } = call;
  if (!trace) return pending;
  trace.enqueued(request, enqueuedAt);
  return { ...pending, sink: new TracedSink(sink, trace) };
}

class TracedSink implements ResponseSink {
  readonly #sink: ResponseSink;
  readonly #trace: RequestTrace;

  constructor(sink: ResponseSink, trace: RequestTrace) {
    this.#sink = sink;
    this.#trace = trace;
  }

  get room(): Promise<void> | undefined {
    return this.#sink.room;
  }

  send(response: InferenceResponse | undefined, final: boolean): void {
    const now = performance.now();
    if (response) this.#trace.responded(response, now);
    if (final) this.#trace.ended(now);
    this.#sink.send(response, final);
  }

  fail(error: InferenceError): void {
    this.#trace.ended(performance.now(), error);
    this.#sink.fail(error);
  }
}
