import type { ColdStartMarks } from "../../protocol/cold-start.ts";
import type { InferenceError } from "../../protocol/error.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import type {
  ComputeMoments,
  EdgeMoment,
  RequestTrace,
  TracedRequest,
} from "../../protocol/request-trace.ts";
import type { ExecutionTimings } from "../model-statistics.ts";

/** What the executions of all steps took together, wherever they ran. */
export class StepTimes implements ExecutionTimings {
  /** Its steps do the waiting. */
  readonly queueNanoseconds = 0;
  computeInputNanoseconds = 0;
  computeInferNanoseconds = 0;
  computeOutputNanoseconds = 0;

  add({ startAt, inputEndAt, outputStartAt, endAt }: ComputeMoments): void {
    this.computeInputNanoseconds += (inputEndAt - startAt) * 1e6;
    this.computeInferNanoseconds += (outputStartAt - inputEndAt) * 1e6;
    this.computeOutputNanoseconds += (endAt - outputStartAt) * 1e6;
  }
}

/** Listens to what a step's execution takes, in front of the trace of a request that is traced. */
export class StepTrace implements RequestTrace {
  readonly #times: StepTimes;
  readonly #trace: RequestTrace | undefined;

  constructor(times: StepTimes, trace: RequestTrace | undefined) {
    this.#times = times;
    this.#trace = trace;
  }

  get traceparent(): string | undefined {
    return this.#trace?.traceparent;
  }

  computed(moments: ComputeMoments): void {
    this.#times.add(moments);
    this.#trace?.computed(moments);
  }

  /** For a step that is an ensemble itself: what its steps take belongs to both. */
  step(at: number): RequestTrace {
    return new StepTrace(this.#times, this.#trace?.step(at));
  }

  mark(moment: EdgeMoment, at: number): void {
    this.#trace?.mark(moment, at);
  }

  enqueued(request: TracedRequest, at: number): void {
    this.#trace?.enqueued(request, at);
  }

  arrived(at: number): void {
    this.#trace?.arrived(at);
  }

  startedCold(marks: ColdStartMarks): void {
    this.#trace?.startedCold(marks);
  }

  responded(response: InferenceResponse, at: number): void {
    this.#trace?.responded(response, at);
  }

  ended(at: number, error?: InferenceError): void {
    this.#trace?.ended(at, error);
  }

  failed(error: InferenceError): void {
    this.#trace?.failed(error);
  }

  close(at: number): void {
    this.#trace?.close(at);
  }
}
