import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { aboutRequest } from "../../protocol/request-label.ts";
import { Alarm } from "../../serving/alarm.ts";
import type { Clock } from "../../serving/clock.ts";
import { DeadlineHeap } from "../../serving/deadline-heap.ts";
import type { ModelStatisticsRecorder } from "../../serving/model-statistics.ts";
import { refusal } from "../../serving/refusal.ts";
import type { PendingRequest, Scheduler } from "../../serving/scheduler.ts";
import type { FailureReason } from "../../telemetry/model-observation.ts";
import { iterativeSequences, nextTurn } from "./iterative-sequence.ts";
import type { SchedulerOptions } from "./queue-scheduler.ts";
import type { SequenceBatcher, SequenceKeeper } from "./sequence-batcher.ts";
import { DirectSequenceBatcher } from "./sequence-direct.ts";
import type { SequenceModel } from "./sequence-model.ts";
import { OldestSequenceBatcher } from "./sequence-oldest.ts";
import { sequenceError } from "./sequence-error.ts";
import { newSequence, type Sequence, sequenceKey } from "./sequence.ts";

/** The scheduler of a model with `sequence_batching`. */
export function sequenceBatchScheduler(model: SequenceModel, options: SchedulerOptions): Scheduler {
  return new SequenceBatchScheduler(model, options);
}

const noDelay = { maxQueueDelayMicroseconds: 0, minimumSlotUtilization: 0 };

/**
 * Knows the sequences of a model: which are open, which have a slot on an instance, and which wait for one. When a slot
 * gets free the sequence that has waited longest moves in; the batcher of the instance does the rest.
 */
class SequenceBatchScheduler implements Scheduler, SequenceKeeper {
  readonly #statistics: ModelStatisticsRecorder;
  readonly #clock: Clock;
  readonly #maxIdleMilliseconds: number;
  /** Where each request is a sequence. */
  readonly #asSequence: ((pending: PendingRequest) => PendingRequest) | undefined;
  readonly #batchers: readonly SequenceBatcher[];
  /** Those that a request without START may belong to. */
  readonly #open = new Map<string, Sequence>();
  /** Those without a slot, in the order of their first requests. */
  readonly #backlog = new Set<Sequence>();
  /** Of those in the backlog that may not wait for ever, and of those that have a slot and are idle. */
  readonly #deadlines = new DeadlineHeap<Sequence>();
  readonly #alarm: Alarm;
  #waiting = 0;
  #inflight = 0;
  #stopping = false;
  #drained: () => void = () => {};

  constructor(model: SequenceModel, options: SchedulerOptions) {
    const { batching } = model;
    const { instances, statistics, clock } = options;
    this.#statistics = statistics;
    this.#clock = clock;
    this.#maxIdleMilliseconds = batching.maxSequenceIdleMicroseconds / 1000;
    this.#asSequence = batching.iterativeSequence ? iterativeSequences(model) : undefined;
    this.#alarm = new Alarm(clock, () => this.#endLate());
    this.#batchers = instances.instances.map((instance) => {
      const all = { model, keeper: this, instance, statistics, clock };
      return batching.oldest
        ? new OldestSequenceBatcher(all, batching.oldest)
        : new DirectSequenceBatcher(all, batching.direct ?? noDelay);
    });
    instances.onRoom(() => {
      for (const batcher of this.#batchers) batcher.hasRoom();
    });
  }

  get inflight(): number {
    return this.#inflight;
  }

  enqueue(given: PendingRequest): void {
    const pending = this.#asSequence?.(given) ?? given;
    const error = this.#busy(pending) ?? sequenceError(pending, this.#open);
    if (error) {
      pending.sink.fail(error);
      return;
    }
    const sequence = this.#sequenceOf(pending);
    sequence.waiting.push(pending);
    this.#inflight++;
    this.#wait();
    if (sequence.batcher) this.#setDeadline(sequence, Infinity);
    else this.#findSlot(sequence, pending);
    pending.call.onCancel((reason) => this.#cancel(sequence, pending, reason));
    sequence.batcher?.wake(sequence);
  }

  stop(): Promise<void> {
    this.#stopping = true;
    // Nobody can go on with those that are idle.
    for (const { slots } of this.#batchers) {
      for (const sequence of slots.sequences) if (sequence) this.#goOn(sequence);
    }
    return new Promise((resolve) => {
      this.#drained = resolve;
      this.#endWhenDrained();
    });
  }

  take(sequence: Sequence): PendingRequest {
    const pending = sequence.waiting.shift();
    if (!pending) throw new Error("a sequence without a waiting request was to run");
    pending.call.onCancel(undefined);
    // Whatever becomes of a first request: what was before it is over.
    if (pending.request.sequence?.start) sequence.states = undefined;
    sequence.running = true;
    this.#waiting--;
    this.#statistics.dequeued(1);
    return pending;
  }

  answered(sequence: Sequence, error?: InferenceError): void {
    sequence.running = false;
    this.#inflight--;
    if (error?.code === StatusCode.Unavailable) this.#endLost(sequence, error);
    // It was given up after its turn had come: without it, what follows would be another sequence.
    else if (error?.code === StatusCode.Cancelled) this.#cut(sequence, 0, "CANCELED", cancelled);
    else {
      sequence.begun = true;
      if (this.#asSequence) this.#close(sequence);
      this.#goOn(sequence);
    }
    this.#endWhenDrained();
  }

  again(sequence: Sequence, pending: PendingRequest): void {
    const next = nextTurn(pending, sequence.id, this.#clock.now());
    sequence.running = false;
    sequence.begun = true;
    sequence.waiting.unshift(next);
    this.#wait();
    next.call.onCancel((reason) => this.#cancel(sequence, next, reason));
    this.#goOn(sequence);
  }

  #wait(): void {
    this.#waiting++;
    this.#statistics.enqueued();
  }

  #busy({ request }: PendingRequest): InferenceError | undefined {
    const refused = refusal(request.modelName, this.#stopping, this.#waiting);
    if (!refused) return undefined;
    this.#statistics.failed("REJECTED", 0);
    return aboutRequest(request.id, refused);
  }

  /** A START within an open sequence begins it anew, in its place. */
  #sequenceOf({ request: { sequence: given }, call }: PendingRequest): Sequence {
    const id = given?.id ?? 0n;
    const key = sequenceKey(call.principal, id);
    const sequence = this.#open.get(key) ?? newSequence(id, key);
    if (given?.end) this.#close(sequence);
    else this.#open.set(key, sequence);
    return sequence;
  }

  /** Nothing more is taken for it; what waits of it still runs. */
  #close(sequence: Sequence): void {
    sequence.ended = true;
    if (this.#open.get(sequence.key) === sequence) this.#open.delete(sequence.key);
  }

  #findSlot(sequence: Sequence, pending: PendingRequest): void {
    let least: SequenceBatcher | undefined;
    let lowest = Infinity;
    for (const batcher of this.#batchers) {
      const { free } = batcher.slots;
      if (free < lowest) [least, lowest] = [batcher, free];
    }
    if (least) {
      this.#giveSlot(sequence, least);
      return;
    }
    const { timeoutMicroseconds } = pending.request;
    this.#backlog.add(sequence);
    // The earliest timeout among its requests is the timeout of them all.
    if (timeoutMicroseconds > 0) {
      const deadline = pending.enqueuedAt + timeoutMicroseconds / 1000;
      this.#setDeadline(sequence, Math.min(deadline, sequence.deadline));
    }
  }

  #giveSlot(sequence: Sequence, batcher: SequenceBatcher): void {
    this.#setDeadline(sequence, Infinity);
    sequence.batcher = batcher;
    batcher.slots.take(sequence);
  }

  /** What comes after a request has left a sequence: the next one, an end, or idleness. */
  #goOn(sequence: Sequence): void {
    if (sequence.running) return;
    if (sequence.waiting.length > 0) sequence.batcher?.wake(sequence);
    else if (sequence.ended || this.#stopping) this.#release(sequence);
    else this.#setDeadline(sequence, this.#clock.now() + this.#maxIdleMilliseconds);
  }

  #release(sequence: Sequence): void {
    const { batcher } = sequence;
    this.#setDeadline(sequence, Infinity);
    this.#backlog.delete(sequence);
    if (!batcher) return;
    sequence.batcher = undefined;
    batcher.slots.release(sequence);
    const [next] = this.#backlog;
    if (!next) return;
    this.#backlog.delete(next);
    this.#giveSlot(next, batcher);
    batcher.wake(next);
  }

  #cancel(sequence: Sequence, pending: PendingRequest, reason: InferenceError): void {
    // As in the reference: what stands before it in a slot still runs, of a sequence without a slot nothing does.
    const from = sequence.batcher ? sequence.waiting.indexOf(pending) : 0;
    this.#cut(sequence, from, "CANCELED", reason);
    this.#endWhenDrained();
  }

  /** Ends a sequence before the given one of its waiting requests: that one and all after it fail. */
  #cut(sequence: Sequence, from: number, reason: FailureReason, cause: InferenceError): void {
    this.#close(sequence);
    for (const pending of sequence.waiting.splice(from)) this.#drop(pending, reason, cause);
    this.#goOn(sequence);
  }

  #drop(
    { request, call, sink, enqueuedAt }: PendingRequest,
    reason: FailureReason,
    cause: InferenceError,
  ): void {
    call.onCancel(undefined);
    this.#waiting--;
    this.#inflight--;
    this.#statistics.dequeued(1);
    this.#statistics.failed(reason, this.#clock.now() - enqueuedAt);
    sink.fail(reason === "CANCELED" ? aboutRequest(request.id, cause) : cause);
  }

  /** The instance is gone, and with it all that it knew of its sequences: none of these may go on elsewhere. */
  #endLost(failed: Sequence, cause: InferenceError): void {
    const lost = failed.batcher?.slots.sequences ?? [];
    for (const sequence of lost.filter((one) => one === failed || one?.begun)) {
      if (sequence) this.#cut(sequence, 0, "BACKEND", cause);
    }
  }

  #setDeadline(sequence: Sequence, deadline: number): void {
    if (deadline === sequence.deadline) return;
    this.#deadlines.remove(sequence);
    sequence.deadline = deadline;
    if (deadline === Infinity) return;
    this.#deadlines.add(sequence);
    this.#alarm.set(deadline, this.#clock.now());
  }

  /** Ends what has been idle for too long, and what has waited too long for a slot. */
  #endLate(): void {
    const now = this.#clock.now();
    for (
      let { first } = this.#deadlines;
      first && first.deadline <= now;
      { first } = this.#deadlines
    ) {
      this.#cut(first, 0, "REJECTED", expired);
    }
    const { first } = this.#deadlines;
    if (first) this.#alarm.set(first.deadline, now);
    this.#endWhenDrained();
  }

  #endWhenDrained(): void {
    if (!this.#stopping || this.#inflight > 0) return;
    this.#alarm.cancel();
    for (const batcher of this.#batchers) batcher.close();
    this.#drained();
  }
}

const cancelled = new InferenceError(StatusCode.Cancelled, "request was cancelled");
const expired = new InferenceError(
  StatusCode.Unavailable,
  "timeout of the corresponding sequence has been expired",
);
