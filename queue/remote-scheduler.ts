import type { InferenceError } from "../protocol/error.ts";
import { keepsSequences } from "../protocol/keeps-sequences.ts";
import { aboutRequest } from "../protocol/request-label.ts";
import type { ServedModel } from "../protocol/served-model.ts";
import { Alarm } from "../serving/alarm.ts";
import type { Clock } from "../serving/clock.ts";
import { DeadlineHeap, type Expiring } from "../serving/deadline-heap.ts";
import type { ModelStatisticsRecorder } from "../serving/model-statistics.ts";
import { patienceMilliseconds } from "../serving/queue-policy.ts";
import { refusal, timeoutExpired } from "../serving/refusal.ts";
import type { PendingRequest, Scheduler } from "../serving/scheduler.ts";
import type { FailureReason } from "../telemetry/model-observation.ts";
import type { PoolLink } from "./pool-link.ts";
import { ReadReceipt } from "./read-receipt.ts";
import type { Sender } from "./sender.ts";
import type { SentRequest } from "./sent-envelope.ts";
import { type HeldRequest, SequenceSender } from "./sequence-sender.ts";

export interface RemoteSchedulerOptions {
  readonly link: PoolLink;
  readonly statistics: ModelStatisticsRecorder;
  readonly clock: Clock;
}

type RemoteRequest = HeldRequest & Omit<Expiring, "deadline"> & { deadline: number };

/** A model that answers as often as it likes. */
const isDecoupled = ({ config }: ServedModel): boolean =>
  config.modelTransactionPolicy?.decoupled === true;

/** When to look again after a request whose envelope is gone: by then its reply is here, or it was sent again. */
const lookAgainMilliseconds = 1000;

/**
 * Hands requests for one version to the pool workers, whose own schedulers decide when they run. Those that are
 * cancelled, or out of time before any pool worker has taken them, it takes back.
 */
export class RemoteScheduler implements Scheduler {
  readonly #version: string;
  readonly #options: RemoteSchedulerOptions;
  readonly #sender: Sender | SequenceSender;
  readonly #deadlines = new DeadlineHeap<RemoteRequest>();
  readonly #alarm: Alarm;
  #inflight = 0;
  #stopping = false;
  #drained: () => void = () => {};

  /** @param version its key */
  constructor(version: string, model: ServedModel, options: RemoteSchedulerOptions) {
    const { link } = options;
    this.#version = version;
    this.#options = options;
    this.#sender = keepsSequences(model.config)
      ? new SequenceSender(version, model, link)
      : link.sender;
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
    this.#sender.send(request);
    // At the end, because it may have been cancelled before it came here.
    pending.call.onCancel((reason) => void this.#cancel(request, reason));
  }

  stop(): Promise<void> {
    this.#stopping = true;
    if (this.#inflight === 0) return Promise.resolve();
    return new Promise((resolve) => (this.#drained = resolve));
  }

  #request(given: PendingRequest): RemoteRequest {
    const receipt = isDecoupled(given.request.model)
      ? this.#receipt(given, () => request)
      : undefined;
    const pending = receipt ? { ...given, sink: receipt } : given;
    const request: RemoteRequest = {
      pending,
      version: this.#version,
      over: false,
      replies: 0,
      deadline: deadlineOf(pending),
      slot: -1,
      done: () => {
        pending.call.onCancel(undefined);
        receipt?.end();
        this.#deadlines.remove(request);
        this.#inflight--;
        if (this.#inflight > 0 || !this.#stopping) return;
        this.#alarm.cancel();
        // Its last answer is handed over behind this turn.
        setImmediate(() => setImmediate(this.#drained));
      },
    };
    return request;
  }

  /** @param request the one that has the receipt for its sink */
  #receipt({ sink }: PendingRequest, request: () => RemoteRequest): ReadReceipt {
    const { link, clock } = this.#options;
    const wayOf = (): SentRequest => request().way ?? request();
    return new ReadReceipt({
      sink,
      clock,
      replies: () => wayOf().replies,
      tell: (number) => {
        const { place } = wayOf();
        if (!place) return;
        const { envelope, index } = place;
        link.channel.publish({ type: "read", envelope: envelope.id, index, number });
      },
    });
  }

  /** Nobody waits for it: it is answered here at once, and taken from whoever has it. */
  async #cancel(request: RemoteRequest, reason: InferenceError): Promise<void> {
    const { sender } = this.#options.link;
    const { pending, way = request } = request;
    this.#sender.forget(request);
    pending.sink.fail(aboutRequest(pending.request.id, reason));
    const withdrawal = await sender.withdraw(way).catch(() => "gone");
    if (withdrawal === "taken") await this.#tell(way);
    else if (withdrawal !== "gone") this.#count(pending, "CANCELED");
  }

  /** The pool worker that has the request is to let go of it. */
  async #tell(request: SentRequest): Promise<void> {
    const { sender, channel } = this.#options.link;
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
    const { link, clock } = this.#options;
    const { way = request } = request;
    const withdrawal = await link.sender.withdraw(way).catch(() => "withdrawn");
    if (request.over || withdrawal === "taken") return;
    if (withdrawal === "gone") {
      request.deadline = clock.now() + lookAgainMilliseconds;
      this.#expect(request);
      return;
    }
    this.#sender.forget(request);
    this.#refuse(request.pending, "REJECTED", timeoutExpired());
  }

  #refuse(pending: PendingRequest, reason: FailureReason, cause: InferenceError): void {
    this.#count(pending, reason);
    pending.sink.fail(aboutRequest(pending.request.id, cause));
  }

  #count(pending: PendingRequest, reason: FailureReason): void {
    const { statistics, link, clock } = this.#options;
    statistics.failed(reason, clock.now() - pending.enqueuedAt);
    link.board.changed(this.#version, statistics);
  }
}

/** A request that goes on with a sequence is bound by the timeout of its START, as in the reference. */
function deadlineOf({ request, enqueuedAt }: PendingRequest): number {
  const { sequence, model } = request;
  const goesOn = keepsSequences(model.config) && sequence?.start !== true;
  return goesOn ? Infinity : enqueuedAt + patienceMilliseconds(request);
}
