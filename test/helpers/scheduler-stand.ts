import { ModelStatisticsRecorder } from "../../serving/model-statistics.ts";
import type { SchedulerOptions } from "../../pool/scheduler/queue-scheduler.ts";
import type { Scheduler } from "../../serving/scheduler.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import type { InferenceRequest } from "../../protocol/inference.ts";
import type { Shape } from "../../protocol/shape.ts";
import { FakeClock, turn } from "./fake-clock.ts";
import { HandHeldInstances } from "./hand-held-instances.ts";
import { pendingRequest, requestFor, type SentRequest } from "./requests.ts";

/** A scheduler with time, instances and requests in the hands of the test. */
export class SchedulerStand {
  readonly clock = new FakeClock();
  readonly instances: HandHeldInstances;
  readonly statistics: ModelStatisticsRecorder;
  readonly scheduler: Scheduler;
  readonly #model: ServedModel;

  constructor(
    model: ServedModel,
    create: (options: SchedulerOptions) => Scheduler,
    instanceCount = 1,
  ) {
    this.#model = model;
    this.instances = new HandHeldInstances(instanceCount);
    this.statistics = new ModelStatisticsRecorder({ ...model, tags: {} });
    this.scheduler = create({
      instances: this.instances,
      statistics: this.statistics,
      clock: this.clock,
    });
  }

  /** The ids of each execution so far: "a" or "a+b". */
  get ran(): string[] {
    return this.instances.ran;
  }

  /** A request that the scheduler has not seen yet. */
  prepare(id: string, shape?: Shape, more: Partial<InferenceRequest> = {}): SentRequest {
    return pendingRequest(requestFor(this.#model, shape, { id, ...more }), this.clock.now());
  }

  /** Hands a request to the scheduler; it acts at the end of the turn. */
  enqueue(id: string, shape?: Shape, more: Partial<InferenceRequest> = {}): SentRequest {
    const sent = this.prepare(id, shape, more);
    this.scheduler.enqueue(sent);
    return sent;
  }

  /** Hands over requests in one turn and lets the scheduler act. */
  async send(...ids: string[]): Promise<SentRequest[]> {
    const sent = ids.map((id) => this.enqueue(id));
    await turn();
    return sent;
  }

  /** Ends the n-th execution well. */
  async finish(execution: number): Promise<void> {
    this.instances.executions[execution]?.finish();
    await turn();
  }
}
