import type { InferenceError } from "../protocol/error.ts";
import { aboutRequest } from "../protocol/request-label.ts";
import { Alarm } from "../serving/alarm.ts";
import type { Clock } from "../serving/clock.ts";
import { DeadlineHeap, type Expiring } from "../serving/deadline-heap.ts";
import type { ModelStatisticsRecorder } from "../serving/model-statistics.ts";
import { refusal, timeoutExpired } from "../serving/refusal.ts";
import type { PendingRequest, Scheduler } from "../serving/scheduler.ts";
import type { FailureReason } from "../telemetry/model-observation.ts";
import type { PoolChannel } from "./pool-channel.ts";
import type { Sender, SentRequest } from "./sender.ts";
import type { StatisticsBoard } from "./statistics-board.ts";

export interface RemoteSchedulerOptions {
  readonly sender: Sender;
  readonly channel: PoolChannel;
  readonly board: StatisticsBoard;
  readonly statistics: ModelStatisticsRecorder;
  readonly clock: Clock;
}

type RemoteRequest = SentRequest & Omit<Expiring, "deadline"> & { deadline: number };

/** When to look again after a request whose envelope is gone: by then its reply is here, or it was sent again. */
const lookAgainMilliseconds = 1000;

/**
 * Hands requests for one version to the pool workers, whose own schedulers decide when they run. Those that are
 * cancelled, or out of time before any pool worker has taken them, it takes back.
 */
export class RemoteScheduler implements Scheduler {
  readonly #version: string;
  readonly #options: RemoteSchedulerOptions;
  readonly #deadlines = new DeadlineHeap<RemoteRequest>();
  readonly #alarm: Alarm;
  #inflight = 0;
  #stopping = false;
  #drained: () => void = () => {};

  /** @param version its key */
  constructor(version: string, options: RemoteSchedulerOptions) {
    this.#version = version;
    this.#options = options;
    this.#alarm = new Alarm(options.clock, () => this.#expire());
  }

  get inflight(): number {
    return this.#inflight;
  }

  enqueue(pending: PendingRequest): void {
    const refused = refusal(pending.request.modelName, this.#stopping, this.#inflight);
    if (refused) {
      this.#refuse(pending, "REJECTED", refused);
      return;
    }
    const request = this.#request(pending);
    this.#inflight++;
    if (request.deadline !== Infinity) this.#expect(request);
    this.#options.sender.send(request);
    // At the end, because it may have been cancelled before it came here.
    pending.call.onCancel((reason) => void this.#cancel(request, reason));
  }

  stop(): Promise<void> {
    this.#stopping = true;
    if (this.#inflight === 0) return Promise.resolve();
    return new Promise((resolve) => (this.#drained = resolve));
  }

  #request(pending: PendingRequest): RemoteRequest {
    const { timeoutMicroseconds } = pending.request;
    const request: RemoteRequest = {
      pending,
      version: this.#version,
      over: false,
      replies: 0,
      deadline:
        timeoutMicroseconds > 0 ? pending.enqueuedAt + timeoutMicroseconds / 1000 : Infinity,
      slot: -1,
      done: () => {
        pending.call.onCancel(undefined);
        this.#deadlines.remove(request);
        this.#inflight--;
        if (this.#inflight > 0 || !this.#stopping) return;
        this.#alarm.cancel();
        this.#drained();
      },
    };
    return request;
  }

  /** Nobody waits for it: it is answered here at once, and taken from whoever has it. */
  async #cancel(request: RemoteRequest, reason: InferenceError): Promise<void> {
    const { sender } = this.#options;
    const { pending } = request;
    sender.forget(request);
    pending.sink.fail(aboutRequest(pending.request.id, reason));
    const withdrawal = await sender.withdraw(request).catch(() => "gone");
    if (withdrawal === "taken") await this.#tell(request);
    else if (withdrawal !== "gone") this.#count(pending, "CANCELED");
  }

  /** The pool worker that has the request is to let go of it. */
  async #tell(request: RemoteRequest): Promise<void> {
    const { sender, channel } = this.#options;
    const { place } = request;
    if (!place) return;
    channel.publish({ type: "cancel", envelope: place.envelope.id, index: place.index });
    await sender.drop(request).catch(() => {});
  }

  #expect(request: RemoteRequest): void {
    this.#deadlines.add(request);
    this.#alarm.set(request.deadline, this.#options.clock.now());
  }

  #expire(): void {
    const now = this.#options.clock.now();
    for (let late = this.#deadlines.first; late && late.deadline <= now;) {
      this.#deadlines.remove(late);
      void this.#takeBack(late);
      late = this.#deadlines.first;
    }
    this.#alarm.set(this.#deadlines.first?.deadline ?? Infinity, now);
  }

  /** A request whose time in queues is over; a pool worker that has it sees to that itself. */
  async #takeBack(request: RemoteRequest): Promise<void> {
    const { sender, clock } = this.#options;
    const withdrawal = await sender.withdraw(request).catch(() => "withdrawn");
    if (request.over || withdrawal === "taken") return;
    if (withdrawal === "gone") {
      request.deadline = clock.now() + lookAgainMilliseconds;
      this.#expect(request);
      return;
    }
    sender.forget(request);
    this.#refuse(request.pending, "REJECTED", timeoutExpired());
  }

  #refuse(pending: PendingRequest, reason: FailureReason, cause: InferenceError): void {
    this.#count(pending, reason);
    pending.sink.fail(aboutRequest(pending.request.id, cause));
  }

  #count(pending: PendingRequest, reason: FailureReason): void {
    const { statistics, board, clock } = this.#options;
    statistics.failed(reason, clock.now() - pending.enqueuedAt);
    board.changed(this.#version, statistics);
  }
}
