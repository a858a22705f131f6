import type { ModelConfig, ModelDynamicBatching } from "../../protocol/model-config.ts";
import { mayShareBatch } from "./equal-inputs.ts";
import type { QueuedRequest } from "./lane.ts";
import { PendingQueue } from "./pending-queue.ts";
import { preserveOrdering } from "./preserve-ordering.ts";
import { type BatchPolicy, QueueScheduler, type SchedulerOptions } from "./queue-scheduler.ts";
import { requestRunner } from "./run-requests.ts";
import type { PendingRequest, Scheduler } from "../../serving/scheduler.ts";

/**
 * The scheduler of a model with `dynamic_batching`: joins requests that wait into one execution of at most
 * `max_batch_size` items, and holds a small one back for `max_queue_delay_microseconds` in the hope of more.
 */
export function dynamicBatchScheduler(
  config: ModelConfig,
  batching: ModelDynamicBatching,
  options: SchedulerOptions,
): Scheduler {
  const run = requestRunner(options.statistics, options.clock);
  return new QueueScheduler(
    options,
    new DynamicBatchPolicy(config, batching),
    batching.preserveOrdering ? preserveOrdering(run) : run,
    new PendingQueue(batching),
  );
}

/** Walks along the line once: what it has found of the next batch stays true until somebody leaves or gets in between. */
class DynamicBatchPolicy implements BatchPolicy {
  readonly #maxBatchSize: number;
  readonly #preferredBatchSizes: ReadonlySet<number>;
  readonly #maxPreferredBatchSize: number;
  readonly #maxDelayMilliseconds: number;
  readonly #mayShareBatch: (first: PendingRequest, other: PendingRequest) => boolean;
  #changes = 0;
  #last: QueuedRequest | undefined;
  #count = 0;
  #batchSize = 0;
  #preferredCount = 0;
  #oldest = Infinity;
  #closed = false;
  #askAgainAt = Infinity;

  constructor(config: ModelConfig, batching: ModelDynamicBatching) {
    this.#maxBatchSize = Math.max(1, config.maxBatchSize);
    const preferred = batching.preferredBatchSize;
    this.#preferredBatchSizes = new Set(preferred.length > 0 ? preferred : [this.#maxBatchSize]);
    this.#maxPreferredBatchSize = Math.max(...this.#preferredBatchSizes);
    this.#maxDelayMilliseconds = batching.maxQueueDelayMicroseconds / 1000;
    this.#mayShareBatch = mayShareBatch(config);
  }

  get askAgainAt(): number {
    return this.#askAgainAt;
  }

  choose(queue: PendingQueue, now: number): number {
    const { front } = queue;
    if (!front) return 0;
    if (this.#changes !== queue.changes) this.#startOver(queue);
    this.#walk(front);
    const dueAt = this.#oldest + this.#maxDelayMilliseconds;
    // Without a delay nobody is ever late: a preferred size is still worth leaving the rest behind.
    const late = this.#maxDelayMilliseconds > 0 && now >= dueAt;
    if (this.#preferredCount > 0 && !late) return this.#preferredCount;
    if (this.#closed || this.#batchSize >= this.#maxPreferredBatchSize || now >= dueAt)
      return this.#count;
    this.#askAgainAt = dueAt;
    return 0;
  }

  #startOver(queue: PendingQueue): void {
    this.#changes = queue.changes;
    this.#last = undefined;
    this.#count = this.#batchSize = this.#preferredCount = 0;
    this.#oldest = Infinity;
    this.#closed = false;
  }

  #walk(front: QueuedRequest): void {
    for (
      let entry = this.#last ? this.#last.next : front;
      entry && !this.#closed;
      entry = entry.next
    ) {
      const batchSize = this.#batchSize + Math.max(1, entry.pending.request.batchSize);
      if (this.#count > 0 && !this.#admits(front, entry, batchSize)) return;
      this.#last = entry;
      this.#count++;
      this.#batchSize = batchSize;
      this.#oldest = Math.min(this.#oldest, entry.pending.enqueuedAt);
      if (this.#preferredBatchSizes.has(batchSize)) this.#preferredCount = this.#count;
    }
  }

  #admits(front: QueuedRequest, entry: QueuedRequest, batchSize: number): boolean {
    if (batchSize > this.#maxPreferredBatchSize && this.#preferredCount === 0) {
      this.#preferredCount = this.#count;
    }
    this.#closed =
      batchSize > this.#maxBatchSize || !this.#mayShareBatch(front.pending, entry.pending);
    return !this.#closed;
  }
}
