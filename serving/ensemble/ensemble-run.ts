import { Call } from "../../protocol/call.ts";
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
import { SingleResponse } from "../response-sinks.ts";
import type { PendingRequest } from "../scheduler.ts";
import { fitShape } from "./fit-shape.ts";
import type { EnsemblePlan, StepPlan } from "./plan.ts";

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
  /** Those that are known; undefined is one that will not come. */
  readonly #tensors = new Map<string, Tensor | undefined>();
  /** For each step that waits, how many tensors it waits for. */
  readonly #missing = new Map<StepPlan, number>();
  readonly #running = new Set<Call>();
  #unanswered: number;
  #stepMilliseconds = 0;
  #ended = false;

  constructor(whole: PendingRequest, plan: EnsemblePlan, options: EnsembleRunOptions) {
    this.#whole = whole;
    this.#plan = plan;
    this.#options = options;
    this.#unanswered = plan.steps.length;
  }

  start(): void {
    const { request, call } = this.#whole;
    const given = new Map(request.inputs.map((input) => [input.name, input]));
    for (const { name } of this.#options.model.config.input)
      this.#tensors.set(name, given.get(name));
    const ready: StepPlan[] = [];
    for (const step of this.#plan.steps) {
      const missing = step.waitsFor.filter((tensor) => !this.#tensors.has(tensor)).length;
      if (missing === 0) ready.push(step);
      else this.#missing.set(step, missing);
    }
    call.onCancel((reason) => this.#cancelled(reason));
    this.#proceed(ready);
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
    const { principal, receivedAt, traceparent } = this.#whole.call;
    const { model, scheduler } = step.member;
    const call = new Call(principal, receivedAt, traceparent);
    const enqueuedAt = this.#options.clock.now();
    try {
      const request = validRequest(model, this.#stepRequest(step));
      this.#running.add(call);
      const sink = new SingleResponse(
        (response) => this.#answered(step, call, response, enqueuedAt),
        (error) => this.#stepFailed(error),
      );
      scheduler.enqueue({ request, call, sink, enqueuedAt });
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
        const tensor = this.#tensors.get(input.tensor);
        if (!tensor) return [];
        const { datatype, shape, bytes } = tensor;
        return { name: input.name, datatype, shape: fitShape(shape, input.dims, batching), bytes };
      }),
      outputs: requested,
      parameters: request.parameters,
      priority: request.priority,
      timeoutMicroseconds: request.timeoutMicroseconds,
      ...(request.sequence && { sequence: request.sequence }),
    };
  }

  #answered(step: StepPlan, call: Call, { outputs }: InferenceResponse, startedAt: number): void {
    if (this.#ended) return;
    this.#running.delete(call);
    this.#unanswered--;
    this.#stepMilliseconds += this.#options.clock.now() - startedAt;
    this.#whole.call.coldStart ??= call.coldStart;
    const ready = step.outputs.flatMap(({ name, tensor }) =>
      this.#arrived(
        tensor,
        outputs.find((output) => output.name === name),
      ),
    );
    this.#proceed(ready);
  }

  /** Gives the steps that can run now. */
  #arrived(name: string, tensor: Tensor | undefined): readonly StepPlan[] {
    this.#tensors.set(name, tensor);
    const readers = this.#plan.readers.get(name) ?? [];
    return readers.filter((step) => {
      const missing = (this.#missing.get(step) ?? 0) - 1;
      this.#missing.set(step, missing);
      return missing === 0;
    });
  }

  #complete(): void {
    const { statistics, clock } = this.#options;
    const response = this.#response();
    this.#end();
    const computeInferNanoseconds = this.#stepMilliseconds * 1e6;
    statistics.executed(
      [this.#whole],
      { computeInputNanoseconds: 0, computeInferNanoseconds, computeOutputNanoseconds: 0 },
      clock.now(),
    );
    this.#whole.sink.send(response, true);
    this.#options.done();
  }

  #response(): InferenceResponse {
    const { request } = this.#whole;
    const { name, version, config } = this.#options.model;
    const asked = new Set(request.outputs.map((output) => output.name));
    const outputs = config.output.flatMap((output) => {
      const tensor = this.#tensors.get(output.name);
      if (!tensor || (asked.size > 0 && !asked.has(output.name))) return [];
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
    for (const call of this.#running) call.cancel(error);
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
