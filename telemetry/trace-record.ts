import type { InferenceResponse } from "../protocol/inference.ts";
import type {
  ComputeMoments,
  EdgeMoment,
  RequestTrace,
  TracedRequest,
} from "../protocol/request-trace.ts";
import type { Tensor } from "../protocol/tensor.ts";
import { traceElements } from "./trace-tensor.ts";
import type { TraceLevel } from "./trace-values.ts";

/** All moments that a trace in the reference's format has. */
type Moment =
  | EdgeMoment
  | "REQUEST_START"
  | "QUEUE_START"
  | "COMPUTE_START"
  | "COMPUTE_INPUT_END"
  | "COMPUTE_OUTPUT_START"
  | "COMPUTE_END"
  | "INFER_RESPONSE_COMPLETE"
  | "REQUEST_END";

export interface TraceRecordOptions {
  readonly level: TraceLevel;
  /** Gives each request and each step of an ensemble a number of its own. */
  readonly nextId: () => number;
  /** Given the whole trace when it is closed: JSON objects with commas between them. */
  readonly done: (json: string) => void;
}

/** Larger tensors are left out of traces. */
const largestTensorBytes = 4 * 1024 * 1024;

/** Between the two clocks of this process, in nanoseconds. */
const monotonicOrigin = Number(process.hrtime.bigint()) - performance.now() * 1e6;

/** Writes down what a request goes through, in the reference's format. */
export class TraceRecord implements RequestTrace {
  readonly traceparent = undefined;
  readonly #options: TraceRecordOptions;
  readonly #id: number;
  readonly #parent: TraceRecord | undefined;
  readonly #entries: string[] = [];
  readonly #steps: TraceRecord[] = [];
  #closed = false;

  /** @param parent of an ensemble's step */
  constructor(options: TraceRecordOptions, parent?: TraceRecord) {
    this.#options = options;
    this.#parent = parent;
    this.#id = options.nextId();
  }

  mark(moment: EdgeMoment, at: number): void {
    this.#moment(moment, at);
  }

  enqueued({ model, id, inputs }: TracedRequest, at: number): void {
    this.#entry({
      model_name: model.name,
      model_version: Number(model.version),
      ...(id !== "" && { request_id: id }),
      ...(this.#parent && { parent_id: this.#parent.#id }),
    });
    this.#moment("REQUEST_START", at);
    this.#moment("QUEUE_START", at);
    this.#tensors("TENSOR_QUEUE_INPUT", inputs);
  }

  // The format has no names for these.
  arrived(): void {}
  startedCold(): void {}

  computed({ startAt, inputEndAt, outputStartAt, endAt }: ComputeMoments): void {
    this.#moment("COMPUTE_START", startAt);
    this.#moment("COMPUTE_INPUT_END", inputEndAt);
    this.#moment("COMPUTE_OUTPUT_START", outputStartAt);
    this.#moment("COMPUTE_END", endAt);
  }

  responded({ outputs }: InferenceResponse, at: number): void {
    this.#tensors("TENSOR_BACKEND_OUTPUT", outputs);
    // The steps of an ensemble answer nobody outside.
    if (!this.#parent) this.#moment("INFER_RESPONSE_COMPLETE", at);
  }

  ended(at: number): void {
    this.#moment("REQUEST_END", at);
  }

  failed(): void {}

  step(): RequestTrace {
    const step = new TraceRecord(this.#options, this);
    this.#steps.push(step);
    return step;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.done(this.#all().join(","));
  }

  #all(): string[] {
    return [...this.#entries, ...this.#steps.flatMap((step) => step.#all())];
  }

  #moment(name: Moment, at: number): void {
    if (!this.#options.level.timestamps) return;
    const ns = Math.round(monotonicOrigin + at * 1e6);
    this.#entry({ timestamps: [{ name, ns }] });
  }

  #tensors(activity: string, tensors: readonly Tensor[]): void {
    if (!this.#options.level.tensors) return;
    for (const tensor of tensors) {
      const { name, shape, datatype: dtype, bytes } = tensor;
      if (bytes.byteLength > largestTensorBytes) continue;
      const data = traceElements(tensor);
      this.#entry({ activity, tensor: { name, data, shape: shape.join(","), dtype } });
    }
  }

  #entry(fields: object): void {
    if (!this.#closed) this.#entries.push(JSON.stringify({ id: this.#id, ...fields }));
  }
}
