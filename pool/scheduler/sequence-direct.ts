import { InferenceError } from "../../protocol/error.ts";
import type { ModelSequenceBatching } from "../../protocol/model-config.ts";
import { Alarm } from "../../serving/alarm.ts";
import type { PendingRequest } from "../../serving/scheduler.ts";
import { mayShareBatch } from "./equal-inputs.ts";
import type { SequenceBatcher, SequenceBatcherOptions } from "./sequence-batcher.ts";
import { nullRequest, sequenceRequest } from "./sequence-request.ts";
import { SequenceSlots } from "./sequence-slots.ts";
import type { Sequence } from "./sequence.ts";

type Direct = NonNullable<ModelSequenceBatching["direct"]>;

/** A slot's share of the next batch. */
interface Row {
  readonly sequence: Sequence;
  readonly request: PendingRequest;
}

/**
 * The strategy `direct`: a sequence keeps its row of the batch from its first request to its last. Rows of slots that
 * have nothing to run are filled up, and told so by the READY control.
 */
export class DirectSequenceBatcher implements SequenceBatcher {
  readonly slots: SequenceSlots;
  readonly #options: SequenceBatcherOptions;
  readonly #mayShareBatch: (first: PendingRequest, other: PendingRequest) => boolean;
  readonly #maxDelayMilliseconds: number;
  readonly #enoughRequests: number;
  readonly #dispatch = (): void => this.#dispatchTurn();
  readonly #alarm: Alarm;
  #dispatching = false;
  #running = false;

  constructor(options: SequenceBatcherOptions, direct: Direct) {
    const { config } = options.model;
    this.slots = new SequenceSlots(Math.max(1, config.maxBatchSize));
    this.#options = options;
    this.#mayShareBatch = mayShareBatch(config);
    this.#maxDelayMilliseconds = direct.maxQueueDelayMicroseconds / 1000;
    this.#enoughRequests = direct.minimumSlotUtilization * this.slots.capacity;
    this.#alarm = new Alarm(options.clock, this.#dispatch);
  }

  wake(): void {
    if (this.#dispatching) return;
    this.#dispatching = true;
    // Sequences that arrive in one turn share a batch; one alone gains nothing by waiting for others of its turn.
    if (this.slots.sequences.length <= 1) queueMicrotask(this.#dispatch);
    else setImmediate(this.#dispatch);
  }

  hasRoom(): void {
    this.wake();
  }

  close(): void {
    this.#alarm.cancel();
  }

  #dispatchTurn(): void {
    this.#dispatching = false;
    if (this.#running || !this.#options.instance.hasRoom || this.#waits()) return;
    const rows = this.#rows();
    if (rows.length > 0) void this.#run(rows);
  }

  /** True while too few sequences have a request and the oldest of these may wait for more. */
  #waits(): boolean {
    const fronts = this.slots.sequences.flatMap((sequence) => sequence?.waiting[0] ?? []);
    if (fronts.length >= this.#enoughRequests) return false;
    const now = this.#options.clock.now();
    const oldest = fronts.reduce((least, { enqueuedAt }) => Math.min(least, enqueuedAt), Infinity);
    const dueAt = oldest + this.#maxDelayMilliseconds;
    if (now >= dueAt) return false;
    if (dueAt !== Infinity) this.#alarm.set(dueAt, now);
    return true;
  }

  /** By slot, up to the last one that has a request for this batch. */
  #rows(): readonly (Row | undefined)[] {
    const rows: (Row | undefined)[] = [];
    let first: PendingRequest | undefined;
    let length = 0;
    for (const [slot, sequence] of this.slots.sequences.entries()) {
      const request = sequence && sequenceRequest(this.#options, sequence);
      first ??= request;
      if (sequence && request && first && this.#mayShareBatch(first, request)) {
        rows[slot] = { sequence, request };
        length = slot + 1;
      } else rows[slot] = undefined;
    }
    return rows.slice(0, length);
  }

  async #run(rows: readonly (Row | undefined)[]): Promise<void> {
    const { model, keeper, instance, statistics, clock } = this.#options;
    const taken = rows.flatMap((row) => row ?? []);
    const [like] = taken;
    if (!like) return;
    this.#running = true;
    for (const { sequence } of taken) keeper.take(sequence);
    const requests = taken.map(({ request }) => request);
    const startedAt = clock.now();
    try {
      const batch = rows.map((row) => row?.request ?? nullRequest(model, like.request));
      const timings = await instance.execute(batch);
      statistics.executed(requests, timings, clock.now());
    } catch (cause) {
      // None is tried again alone: it would not be in its row.
      statistics.executionFailed(requests, startedAt, clock.now());
      for (const { sink } of requests) sink.fail(InferenceError.from(cause));
    }
    this.#running = false;
    this.wake();
  }
}
