import type { Call } from "../../protocol/call.ts";
import { InferenceError } from "../../protocol/error.ts";
import type { InferenceRequest, InferenceResponse } from "../../protocol/inference.ts";
import { noParameters, type Parameters, type ParameterValue } from "../../protocol/parameters.ts";
import { aboutRequest, requestLabel } from "../../protocol/request-label.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import { validRequest } from "../../protocol/valid-request.ts";
import type { FailureReason } from "../../telemetry/model-observation.ts";
import type { Clock } from "../clock.ts";
import type { ModelStatisticsRecorder } from "../model-statistics.ts";
import { SingleResponse } from "../single-response.ts";
import type { PendingRequest } from "../scheduler.ts";
import { tracedRequest } from "../traced-request.ts";
import { fitShape } from "./fit-shape.ts";
import type { EnsemblePlan, StepPlan } from "./plan.ts";
import { StepTimes, StepTrace } from "./step-trace.ts";

export interface EnsembleRunOptions {
  readonly model: ServedModel;
  readonly statistics: ModelStatisticsRecorder;
  readonly clock: Clock;
  /** The request is answered. */
  readonly done: () => void;
}

/**
 * One request on its way through an ensemble: a step is sent to its model's scheduler as soon as its inputs are there,
 * and the first one that fails fails the request and takes the others back.
 */
export class EnsembleRun {
  readonly #whole: PendingRequest;
  readonly #plan: EnsemblePlan;
  readonly #options: EnsembleRunOptions;
  /** By their places in the plan; undefined is one that is not there yet, or will not come. */
  readonly #tensors: (Tensor | undefined)[] = [];
  /** For each step, how many tensors it still waits for. */
  readonly #missing: number[];
  /** Of each step that runs. */
  readonly #running: (Call | undefined)[] = [];
  readonly #times = new StepTimes();
  #unanswered: number;
  #ended = false;

  constructor(whole: PendingRequest, plan: EnsemblePlan, options: EnsembleRunOptions) {
    this.#whole = whole;
    this.#plan = plan;
    this.#options = options;
    this.#missing = plan.missing.slice();
    this.#unanswered = plan.steps.length;
  }

  start(): void {
    const { request, call } = this.#whole;
    for (const { name, tensor } of this.#plan.inputs)
      this.#tensors[tensor] = request.inputs.find((input) => input.name === name);
    call.onCancel((reason) => this.#cancelled(reason));
    this.#proceed(this.#plan.first);
  }

  /** Runs what can run now; some of it may be answered before this returns. */
  #proceed(ready: readonly StepPlan[]): void {
    for (const step of ready) {
      if (this.#ended) return;
      this.#run(step);
    }
    if (!this.#ended && this.#unanswered === 0) this.#complete();
  }

  #run(step: StepPlan): void {
    const { model, scheduler } = step.member;
    const call = this.#whole.call.part();
    const enqueuedAt = this.#options.clock.now();
    try {
      const request = validRequest(model, this.#stepRequest(step));
      this.#running[step.index] = call;
      const sink = new SingleResponse(
        (response) => this.#answered(step, call, response),
        (error) => this.#stepFailed(error),
      );
      const trace = this.#whole.call.trace?.step(enqueuedAt);
      call.trace = new StepTrace(this.#times, trace);
      const pending = { request, call, sink, enqueuedAt };
      scheduler.enqueue(trace ? tracedRequest(pending) : pending);
    } catch (error) {
      this.#fail("OTHER", this.#inEnsemble(InferenceError.from(error)));
    }
  }

  #stepRequest({ member, inputs, requested }: StepPlan): InferenceRequest {
    const { request } = this.#whole;
    const { name, version, config } = member.model;
    const batching = config.maxBatchSize > 0;
    return {
      modelName: name,
      modelVersion: version,
      id: request.id,
      inputs: inputs.flatMap((input) => {
        const tensor = this.#tensors[input.tensor];
        if (!tensor) return [];
        const { datatype, shape, bytes } = tensor;
        return { name: input.name, datatype, shape: fitShape(shape, input.dims, batching), bytes };
      }),
      outputs: requested,
      parameters: request.parameters,
      priority: request.priority,
      timeoutMicroseconds: request.timeoutMicroseconds,
      ...(request.sequence && { sequence: request.sequence }),
      ...(request.cacheControl && { cacheControl: request.cacheControl }),
    };
  }

  #answered(step: StepPlan, call: Call, { outputs }: InferenceResponse): void {
    if (this.#ended) return;
    this.#running[step.index] = undefined;
    this.#unanswered--;
    this.#whole.call.coldStart ??= call.coldStart;
    const ready: StepPlan[] = [];
    for (const { name, tensor } of step.outputs) {
      this.#tensors[tensor] = outputs.find((output) => output.name === name);
      for (const reader of this.#plan.readers[tensor] ?? [])
        if (this.#has(reader)) ready.push(reader);
    }
    this.#proceed(ready);
  }

  /** True when the tensor that has come was the last that the step waited for. */
  #has({ index }: StepPlan): boolean {
    const missing = (this.#missing[index] ?? 0) - 1;
    this.#missing[index] = missing;
    return missing === 0;
  }

  #complete(): void {
    const { statistics, clock } = this.#options;
    const response = this.#response();
    this.#end();
    statistics.executed([this.#whole], this.#times, clock.now());
    this.#whole.sink.send(response, true);
    this.#options.done();
  }

  #response(): InferenceResponse {
    const { request } = this.#whole;
    const { name, version, config } = this.#options.model;
    const outputs = this.#plan.outputs.flatMap((output) => {
      const tensor = this.#tensors[output.tensor];
      if (!tensor) return [];
      const { datatype, shape, bytes } = tensor;
      const fitting = fitShape(shape, output.dims, config.maxBatchSize > 0);
      return { name: output.name, datatype, shape: fitting, bytes };
    });
    const parameters = this.#plan.steps.length > 0 ? sequenceParameters(request) : noParameters;
    return { modelName: name, modelVersion: version, id: request.id, outputs, parameters };
  }

  #stepFailed(error: InferenceError): void {
    if (this.#ended) return;
    // As in the reference, the request's label is not repeated for what a model's scheduler or backend said.
    const label = requestLabel(this.#whole.request.id);
    const { message } = error;
    const bare = message.startsWith(label) ? message.slice(label.length) : message;
    this.#fail("OTHER", this.#inEnsemble(error, bare));
  }

  #inEnsemble(cause: InferenceError, message = cause.message): InferenceError {
    const { code, retryAfterSeconds } = cause;
    const text = `in ensemble '${this.#options.model.name}', ${message}`;
    return new InferenceError(code, text, {
      cause,
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    });
  }

  #cancelled(reason: InferenceError): void {
    this.#fail("CANCELED", aboutRequest(this.#whole.request.id, reason));
  }

  #fail(reason: FailureReason, error: InferenceError): void {
    if (this.#ended) return;
    const { statistics, clock } = this.#options;
    this.#end();
    statistics.failed(reason, clock.now() - this.#whole.enqueuedAt);
    for (const call of this.#running) call?.cancel(error);
    this.#whole.sink.fail(error);
    this.#options.done();
  }

  #end(): void {
    this.#ended = true;
    this.#whole.call.onCancel(undefined);
  }
}

/** The reference tells of the sequence in every answer, also where there is none. */
function sequenceParameters({ sequence }: InferenceRequest): Parameters {
  return sequence
    ? new Map<string, ParameterValue>([
        ["sequence_id", sequence.id],
        ["sequence_start", sequence.start],
        ["sequence_end", sequence.end],
      ])
    : noSequence;
}

const noSequence: Parameters = new Map<string, ParameterValue>([
  ["sequence_id", 0n],
  ["sequence_start", false],
  ["sequence_end", false],
]);
