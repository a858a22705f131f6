import type { InferenceError } from "../../protocol/error.ts";
import { aboutRequest } from "../../protocol/request-label.ts";
import type { FailureReason } from "../../telemetry/model-observation.ts";
import type { InstanceGroup, ModelInstance } from "../instance/model-instance.ts";
import type { ModelStatisticsRecorder } from "../../serving/model-statistics.ts";
import { Alarm } from "../../serving/alarm.ts";
import type { Clock } from "../../serving/clock.ts";
import { PendingQueue } from "./pending-queue.ts";
import type { RunRequests } from "./run-requests.ts";
import { queueFull, refusal, timeoutExpired } from "../../serving/refusal.ts";
import type { PendingRequest, Scheduler } from "../../serving/scheduler.ts";

/** Chooses, from the front of the line, who runs together. */
export interface BatchPolicy {
  /** How many to run now, or 0 to wait. Asked only while somebody waits and an instance has room. */
  choose(queue: PendingQueue, now: number): number;
  /** After a 0: when to ask again if nobody comes, in milliseconds of the clock. */
  readonly askAgainAt: number;
}

export interface SchedulerOptions {
  readonly instances: InstanceGroup;
  readonly statistics: ModelStatisticsRecorder;
  readonly clock: Clock;
}

/**
 * Keeps requests in line until an instance has room, and lets go of those that are cancelled or out of time.
 * It acts once per turn of the event loop, so that all requests that arrived in one turn can share executions.
 */
export class QueueScheduler implements Scheduler {
  readonly #instances: InstanceGroup;
  readonly #statistics: ModelStatisticsRecorder;
  readonly #clock: Clock;
  readonly #policy: BatchPolicy;
  readonly #runRequests: RunRequests;
  readonly #queue: PendingQueue;
  readonly #alarm: Alarm;
  readonly #dispatch = (): void => this.#dispatchTurn();
  #dispatching = false;
  #inflight = 0;
  #stopping = false;
  #drained: () => void = () => {};

  constructor(
    options: SchedulerOptions,
    policy: BatchPolicy,
    run: RunRequests,
    queue = new PendingQueue(),
  ) {
    this.#instances = options.instances;
    this.#statistics = options.statistics;
    this.#clock = options.clock;
    this.#policy = policy;
    this.#runRequests = run;
    this.#queue = queue;
    this.#alarm = new Alarm(options.clock, this.#dispatch);
    this.#instances.onRoom(() => this.#wake());
  }

  get inflight(): number {
    return this.#inflight;
  }

  enqueue(pending: PendingRequest): void {
    const refused = refusal(pending.request.modelName, this.#stopping, this.#queue.size);
    const entry = refused ? undefined : this.#queue.push(pending);
    if (!entry) {
      this.#refuse(pending, "REJECTED", refused ?? queueFull());
      return;
    }
    this.#inflight++;
    this.#statistics.enqueued();
    pending.call.onCancel((reason) => {
      if (this.#queue.remove(entry)) this.#drop(pending, "CANCELED", reason);
    });
    this.#wake();
  }

  stop(): Promise<void> {
    this.#stopping = true;
    if (this.#inflight === 0) {
      this.#alarm.cancel();
      return Promise.resolve();
    }
    return new Promise((resolve) => (this.#drained = resolve));
  }

  #wake(): void {
    if (this.#dispatching || this.#queue.size === 0) return;
    this.#dispatching = true;
    // A lone request gains nothing by waiting for others of its turn, and waiting costs a turn.
    if (this.#inflight === 1) queueMicrotask(this.#dispatch);
    else setImmediate(this.#dispatch);
  }

  #dispatchTurn(): void {
    this.#dispatching = false;
    const now = this.#clock.now();
    for (let late = this.#queue.takeExpired(now); late; late = this.#queue.takeExpired(now)) {
      this.#drop(late, "REJECTED", timeoutExpired());
    }
    this.#alarm.set(Math.min(this.#fillInstances(now), this.#queue.nextDeadline), now);
  }

  /** Forms as many executions as there is room for; gives the time to try again although nothing happened. */
  #fillInstances(now: number): number {
    while (this.#queue.size > 0) {
      const instance = this.#instances.next();
      if (!instance) return Infinity;
      const count = this.#policy.choose(this.#queue, now);
      if (count === 0) return this.#policy.askAgainAt;
      void this.#run(instance, this.#queue.take(count));
    }
    return Infinity;
  }

  async #run(instance: ModelInstance, requests: readonly PendingRequest[]): Promise<void> {
    for (const { call } of requests) call.onCancel(undefined);
    this.#statistics.dequeued(requests.length);
    await this.#runRequests(instance, requests);
    this.#answered(requests.length);
  }

  /** Ends a request that has just left the line without having run. */
  #drop(pending: PendingRequest, reason: FailureReason, cause: InferenceError): void {
    pending.call.onCancel(undefined);
    this.#statistics.dequeued(1);
    this.#refuse(pending, reason, cause);
    this.#answered(1);
  }

  #refuse(pending: PendingRequest, reason: FailureReason, cause: InferenceError): void {
    this.#statistics.failed(reason, this.#clock.now() - pending.enqueuedAt);
    pending.sink.fail(aboutRequest(pending.request.id, cause));
  }

  #answered(count: number): void {
    this.#inflight -= count;
    if (this.#inflight > 0 || !this.#stopping) return;
    this.#alarm.cancel();
    this.#drained();
  }
}
