import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  type SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from "@opentelemetry/api";
import type { ColdStartMarks } from "../protocol/cold-start.ts";
import type { InferenceError } from "../protocol/error.ts";
import type {
  ComputeMoments,
  EdgeMoment,
  RequestTrace,
  TracedRequest,
} from "../protocol/request-trace.ts";
import { type TraceContext, writeTraceparent } from "./trace-context.ts";

/** What the spans of one request share. */
export interface SpanSource {
  readonly tracer: Tracer;
  /** Milliseconds since the epoch at 0 of `performance.now()`. */
  readonly epoch: number;
}

/** What the server does for its caller, or in the caller's place later. */
export interface ServedSpan {
  readonly name: string;
  readonly kind: SpanKind;
  /** `performance.now()` of this process, in milliseconds. */
  readonly startAt: number;
  readonly attributes?: Attributes;
}

/** A request at the edge: the span of the server, with its caller's one above it and those of the models below. */
export class EdgeSpans implements RequestTrace {
  readonly #source: SpanSource;
  readonly #span: Span;
  readonly #model: ModelSpans;
  #error: InferenceError | undefined;

  constructor(source: SpanSource, { startAt, ...served }: ServedSpan, caller?: TraceContext) {
    this.#source = source;
    const above = caller ? contextOf(caller) : ROOT_CONTEXT;
    const options = { ...served, startTime: source.epoch + startAt };
    this.#span = source.tracer.startSpan(served.name, options, above);
    this.#model = new ModelSpans(source, trace.setSpan(ROOT_CONTEXT, this.#span));
  }

  /** Before a scheduler has the request, and after, it is that of the edge. */
  get traceparent(): string {
    return this.#model.traceparent ?? traceparentOf(this.#span);
  }

  mark(moment: EdgeMoment, at: number): void {
    this.#span.addEvent(moment, this.#source.epoch + at);
  }

  enqueued(request: TracedRequest, at: number): void {
    this.#model.enqueued(request, at);
  }

  arrived(at: number): void {
    this.#model.arrived(at);
  }

  startedCold(marks: ColdStartMarks): void {
    this.#model.startedCold(marks);
  }

  computed(moments: ComputeMoments): void {
    this.#model.computed(moments);
  }

  responded(_response: unknown, at: number): void {
    this.#span.addEvent("INFER_RESPONSE_COMPLETE", this.#source.epoch + at);
  }

  ended(at: number, error?: InferenceError): void {
    this.#model.ended(at, error);
  }

  step(at: number): RequestTrace {
    return this.#model.step(at);
  }

  failed(error: InferenceError): void {
    this.#error = error;
  }

  close(at: number): void {
    this.#model.close(at);
    end(this.#span, this.#source.epoch + at, this.#error);
  }
}

/** A request to one model: its span, with those of the wait for the model and of the model's work below it. */
class ModelSpans implements RequestTrace {
  readonly #source: SpanSource;
  readonly #above: Context;
  readonly #steps: ModelSpans[] = [];
  #span: Span | undefined;
  #queue: Span | undefined;

  constructor(source: SpanSource, above: Context) {
    this.#source = source;
    this.#above = above;
  }

  get traceparent(): string | undefined {
    return this.#span && traceparentOf(this.#span);
  }

  /** Only a request at the edge has such moments. */
  mark(): void {}

  enqueued({ model, id }: TracedRequest, at: number): void {
    const attributes = {
      "triton.model_name": model.name,
      ...(model.version !== "" && { "triton.model_version": Number(model.version) }),
      ...(id !== "" && { "triton.request_id": id }),
    };
    const startTime = this.#source.epoch + at;
    this.#span = this.#source.tracer.startSpan(model.name, { startTime, attributes }, this.#above);
    this.#span.addEvent("REQUEST_START", startTime);
    this.#span.addEvent("QUEUE_START", startTime);
    this.#queue = this.#below("queue", at);
  }

  arrived(at: number): void {
    this.#queue?.addEvent("POOL_WORKER_START", this.#source.epoch + at);
  }

  startedCold({ fetchAt, loadAt, warmupAt, readyAt }: ColdStartMarks): void {
    this.#queue?.addEvent("COLD_START_FETCH", fetchAt);
    this.#queue?.addEvent("COLD_START_LOAD", loadAt);
    this.#queue?.addEvent("COLD_START_WARMUP", warmupAt);
    this.#queue?.addEvent("COLD_START_READY", readyAt);
  }

  computed({ startAt, inputEndAt, outputStartAt, endAt }: ComputeMoments): void {
    const { tracer, epoch } = this.#source;
    this.#endQueue(startAt);
    const compute = this.#below("compute", startAt);
    if (!compute) return;
    const context = trace.setSpan(ROOT_CONTEXT, compute);
    const phase = (name: string, from: number, to: number): void =>
      tracer.startSpan(name, { startTime: epoch + from }, context).end(epoch + to);
    phase("compute_input", startAt, inputEndAt);
    phase("compute_infer", inputEndAt, outputStartAt);
    phase("compute_output", outputStartAt, endAt);
    compute.addEvent("COMPUTE_START", epoch + startAt);
    compute.addEvent("COMPUTE_INPUT_END", epoch + inputEndAt);
    compute.addEvent("COMPUTE_OUTPUT_START", epoch + outputStartAt);
    compute.addEvent("COMPUTE_END", epoch + endAt);
    compute.end(epoch + endAt);
  }

  responded(): void {}

  ended(at: number, error?: InferenceError): void {
    this.#endQueue(at);
    this.#span?.addEvent("REQUEST_END", this.#source.epoch + at);
    if (this.#span) end(this.#span, this.#source.epoch + at, error);
    this.#span = undefined;
  }

  step(at: number): RequestTrace {
    this.#endQueue(at);
    const above = this.#span ? trace.setSpan(ROOT_CONTEXT, this.#span) : this.#above;
    const step = new ModelSpans(this.#source, above);
    this.#steps.push(step);
    return step;
  }

  failed(): void {}

  close(at: number): void {
    for (const step of this.#steps) step.close(at);
    if (this.#span) this.ended(at);
  }

  #below(name: string, at: number): Span | undefined {
    if (!this.#span) return undefined;
    const context = trace.setSpan(ROOT_CONTEXT, this.#span);
    return this.#source.tracer.startSpan(name, { startTime: this.#source.epoch + at }, context);
  }

  #endQueue(at: number): void {
    this.#queue?.end(this.#source.epoch + at);
    this.#queue = undefined;
  }
}

function traceparentOf(span: Span): string {
  const { traceId, spanId } = span.spanContext();
  return writeTraceparent({ traceId, spanId, sampled: true });
}

function contextOf({ traceId, spanId, sampled }: TraceContext): Context {
  const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  const spanContext = { traceId, spanId, traceFlags, isRemote: true };
  return trace.setSpanContext(ROOT_CONTEXT, spanContext);
}

function end(span: Span, time: number, error: InferenceError | undefined): void {
  if (error) span.setStatus({ code: SpanStatusCode.ERROR, message: error.message });
  span.end(time);
}
