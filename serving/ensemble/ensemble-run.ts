import type { Call } from "../../protocol/call.ts";
import { InferenceError } from "../../protocol/error.ts";
import type { InferenceRequest, InferenceResponse } from "../../protocol/inference.ts";
import type { Parameters } from "../../protocol/parameters.ts";
import { aboutRequest, requestLabel } from "../../protocol/request-label.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import { validRequest } from "../../protocol/valid-request.ts";
import type { FailureReason } from "../../telemetry/model-observation.ts";
import type { Clock } from "../clock.ts";
import { SingleResponse } from "../single-response.ts";
import type { PendingRequest, ResponseSink } from "../scheduler.ts";
import { tracedRequest } from "../traced-request.ts";
import { fitShape } from "./fit-shape.ts";
import type { EnsemblePlan, StepPlan } from "./plan.ts";
import { StepStream } from "./step-stream.ts";
import { type StepTimes, StepTrace } from "./step-trace.ts";

export interface EnsembleRunOptions {
  readonly model: ServedModel;
  readonly clock: Clock;
  /** Of each response. */
  readonly parameters: Parameters;
  /** Where the executions of all steps are added up. */
  readonly times: StepTimes;
  /** Told before the last answer: what became of the request. */
  readonly ends: (failure: FailureReason | undefined) => void;
}

/**
 * One request on its way through an ensemble: a step is sent to its model's scheduler as soon as its inputs are there,
 * and the first one that fails fails the request and takes the others back. Of a step that answers many times each response
 * goes on as a request of its own.
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
  /** Of each response that goes on by itself. */
  readonly #branches = new Set<Call>();
  #unanswered: number;
  #ended = false;

  constructor(whole: PendingRequest, plan: EnsemblePlan, options: EnsembleRunOptions) {
    this.#whole = whole;
    this.#plan = plan;
    this.#options = options;
    this.#missing = plan.missing.slice();
    this.#unanswered = plan.steps.length;
  }

  /** @param given its inputs, or the outputs of the step whose response goes on */
  start(given: readonly Tensor[]): void {
    const { call } = this.#whole;
    for (const { name, tensor } of this.#plan.inputs)
      this.#tensors[tensor] = given.find((input) => input.name === name);
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
      const sink = step.behind
        ? this.#stream(step.behind)
        : new SingleResponse(
            (response) => this.#answered(step, call, response),
            (error) => this.#fail("OTHER", this.#stepError(error)),
          );
      const trace = this.#whole.call.trace?.step(enqueuedAt);
      call.trace = new StepTrace(this.#options.times, trace);
      const pending = { request, call, sink, enqueuedAt };
      scheduler.enqueue(trace ? tracedRequest(pending) : pending);
    } catch (error) {
      this.#fail("OTHER", this.#inEnsemble(InferenceError.from(error)));
    }
  }

  /** Where the responses of a step go that answers many times. */
  #stream(behind: EnsemblePlan): ResponseSink {
    const { ensembleScheduling } = this.#options.model.config;
    const stream = new StepStream({
      goOn: (response, sink) => this.#goOn(behind, response, sink),
      sink: this.#answers(),
      maxBranches: ensembleScheduling?.maxInflightRequests ?? 0,
    });
    return {
      send: (response, final) => stream.send(response, final),
      get room() {
        return stream.room;
      },
      fail: (error) => stream.fail(this.#stepError(error)),
    };
  }

  #goOn(behind: EnsemblePlan, { outputs }: InferenceResponse, sink: ResponseSink): void {
    if (this.#ended) {
      sink.send(undefined, true);
      return;
    }
    const call = this.#whole.call.part();
    call.trace = this.#whole.call.trace;
    this.#branches.add(call);
    const ends = (): void => void this.#branches.delete(call);
    new EnsembleRun({ ...this.#whole, call, sink }, behind, { ...this.#options, ends }).start(
      outputs,
    );
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
    this.#answers().send(this.#response(), true);
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
    const { parameters } = this.#options;
    return { modelName: name, modelVersion: version, id: request.id, outputs, parameters };
  }

  /** As in the reference, the request's label is not repeated for what a model's scheduler or backend said. */
  #stepError(error: InferenceError): InferenceError {
    const label = requestLabel(this.#whole.request.id);
    const { message } = error;
    return this.#inEnsemble(
      error,
      message.startsWith(label) ? message.slice(label.length) : message,
    );
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
    this.#over(reason, () => this.#whole.sink.fail(error));
    for (const call of [...this.#running, ...this.#branches]) call?.cancel(error);
  }

  /** Hands on the answers; with the last the request is over. */
  #answers(): ResponseSink {
    const { sink } = this.#whole;
    return {
      send: (response, final) => {
        if (final) this.#over(undefined, () => sink.send(response, true));
        else if (!this.#ended) sink.send(response, false);
      },
      get room() {
        return sink.room;
      },
      fail: (error) => this.#fail("OTHER", error),
    };
  }

  #over(failure: FailureReason | undefined, tell: () => void): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#whole.call.onCancel(undefined);
    this.#options.ends(failure);
    tell();
  }
}
