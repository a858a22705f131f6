import { noParameters } from "../../protocol/parameters.ts";
import { aboutRequest } from "../../protocol/request-label.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import type { Clock } from "../clock.ts";
import type { ModelStatisticsRecorder } from "../model-statistics.ts";
import type { RunningVersion } from "../running-version.ts";
import { refusal } from "../refusal.ts";
import type { PendingRequest, Scheduler } from "../scheduler.ts";
import type { FailureReason } from "../../telemetry/model-observation.ts";
import { EnsembleRun } from "./ensemble-run.ts";
import { type EnsemblePlan, planEnsemble } from "./plan.ts";
import { sequenceParameters } from "./sequence-parameters.ts";
import { StepTimes } from "./step-trace.ts";

export interface EnsembleSchedulerOptions {
  readonly statistics: ModelStatisticsRecorder;
  readonly clock: Clock;
}

/** Runs requests through the steps of an ensemble; when each step runs is for its model's own scheduler to decide. */
export class EnsembleScheduler implements Scheduler {
  readonly #model: ServedModel;
  readonly #members: readonly RunningVersion[];
  readonly #options: EnsembleSchedulerOptions;
  readonly #wholePlan: EnsemblePlan;
  #inflight = 0;
  #stopping = false;
  #drained: () => void = () => {};

  /** @param members the version that runs each step */
  constructor(
    model: ServedModel,
    members: readonly RunningVersion[],
    options: EnsembleSchedulerOptions,
  ) {
    this.#model = model;
    this.#members = members;
    this.#options = options;
    this.#wholePlan = this.#plan(model.config.output);
  }

  get inflight(): number {
    return this.#inflight;
  }

  enqueue(pending: PendingRequest): void {
    const refused = refusal(this.#model.name, this.#stopping, this.#inflight);
    if (refused) {
      const { statistics, clock } = this.#options;
      statistics.failed("REJECTED", clock.now() - pending.enqueuedAt);
      pending.sink.fail(aboutRequest(pending.request.id, refused));
      return;
    }
    this.#inflight++;
    const { outputs } = pending.request;
    const all = outputs.length === 0 || outputs.length === this.#model.config.output.length;
    const plan = all ? this.#wholePlan : this.#plan(outputs);
    const times = new StepTimes();
    const { clock } = this.#options;
    const ends = (failure: FailureReason | undefined): void => {
      this.#count(pending, times, failure);
      this.#answered();
    };
    const { request } = pending;
    const parameters = plan.steps.length > 0 ? sequenceParameters(request) : noParameters;
    const options = { model: this.#model, clock, parameters, times, ends };
    new EnsembleRun(pending, plan, options).start(request.inputs);
  }

  #count(pending: PendingRequest, times: StepTimes, failure: FailureReason | undefined): void {
    const { statistics, clock } = this.#options;
    const now = clock.now();
    if (failure) statistics.failed(failure, now - pending.enqueuedAt);
    else statistics.executed([pending], times, now);
  }

  stop(): Promise<void> {
    this.#stopping = true;
    if (this.#inflight === 0) return Promise.resolve();
    return new Promise((resolve) => (this.#drained = resolve));
  }

  #plan(outputs: readonly { readonly name: string }[]): EnsemblePlan {
    const names = outputs.map(({ name }) => name);
    return planEnsemble(this.#model.config, this.#members, names);
  }

  #answered(): void {
    this.#inflight--;
    if (this.#inflight === 0 && this.#stopping) this.#drained();
  }
}
