import type { ModelDynamicBatching } from "../../protocol/model-config.ts";
import { DeadlineHeap } from "../../serving/deadline-heap.ts";
import {
  priorityLevel,
  queuePolicy,
  queueTimeoutMilliseconds,
} from "../../serving/queue-policy.ts";
import type { PendingRequest } from "../../serving/scheduler.ts";
import { Lane, type QueuedRequest } from "./lane.ts";

const delayed = 0.5;

/**
 * Requests in line: by priority level, then the delayed after the others, then tenant by tenant in turns, each one's as they
 * came. Any of them may leave from the middle at any time. Without `dynamic_batching` there are no levels, and with
 * `preserve_ordering` there are no turns: all stand as they came.
 */
export class PendingQueue {
  readonly #batching: ModelDynamicBatching | undefined;
  readonly #deadlines = new DeadlineHeap<QueuedRequest>();
  readonly #lanes: Lane[] = [];
  #front: QueuedRequest | undefined;
  #size = 0;
  #changes = 0;

  constructor(batching?: ModelDynamicBatching) {
    this.#batching = batching;
  }

  get size(): number {
    return this.#size;
  }

  get front(): QueuedRequest | undefined {
    return this.#front;
  }

  /** Grows with whatever happens elsewhere than at the back: who remembers a place in the line compares it. */
  get changes(): number {
    return this.#changes;
  }

  /** When the first of those with a timeout has to be looked at, on the scheduler's clock; Infinity when none has one. */
  get nextDeadline(): number {
    return this.#deadlines.first?.deadline ?? Infinity;
  }

  /** Undefined, and not in line, when its level has as many as `max_queue_size` allows. */
  push(pending: PendingRequest): QueuedRequest | undefined {
    const { request, call, enqueuedAt } = pending;
    const level = priorityLevel(this.#batching, request.priority);
    const policy = queuePolicy(this.#batching, level);
    if (policy && policy.maxQueueSize > 0 && this.#waitingAt(level) >= policy.maxQueueSize) {
      return undefined;
    }
    const entry: QueuedRequest = {
      pending,
      tenant: this.#batching?.preserveOrdering ? "" : call.principal.tenant,
      deadline: enqueuedAt + queueTimeoutMilliseconds(policy, request.timeoutMicroseconds),
      delays: policy?.timeoutAction === "DELAY",
      slot: -1,
      lane: undefined,
      round: 0,
      next: undefined,
      previous: undefined,
    };
    this.#append(entry, level);
    if (entry.deadline !== Infinity) this.#deadlines.add(entry);
    return entry;
  }

  /** Takes out the first so many. */
  take(count: number): PendingRequest[] {
    const taken: PendingRequest[] = [];
    for (let entry = this.#front; entry && taken.length < count; entry = this.#front) {
      this.remove(entry);
      taken.push(entry.pending);
    }
    return taken;
  }

  /** Takes out one that has to leave by now, and delays all before it that may stay. */
  takeExpired(now: number): PendingRequest | undefined {
    for (
      let { first } = this.#deadlines;
      first && first.deadline <= now;
      { first } = this.#deadlines
    ) {
      const level = first.lane?.place ?? 0;
      this.remove(first);
      if (!first.delays) return first.pending;
      this.#append(first, level + delayed);
    }
    return undefined;
  }

  /** Takes one out wherever it stands; false when it has left before. */
  remove(entry: QueuedRequest): boolean {
    const { lane, previous, next } = entry;
    if (!lane) return false;
    lane.remove(entry);
    if (lane.size === 0) this.#lanes.splice(this.#laneUpTo(lane.place), 1);
    if (previous) previous.next = next;
    else this.#front = next;
    if (next) next.previous = previous;
    entry.lane = entry.next = entry.previous = undefined;
    this.#deadlines.remove(entry);
    this.#size--;
    this.#changes++;
    return true;
  }

  #append(entry: QueuedRequest, place: number): void {
    const index = this.#laneUpTo(place);
    const lane = this.#lanes[index];
    let previous = lane?.back;
    if (lane?.place === place) previous = lane.add(entry);
    else this.#lanes.splice(index + 1, 0, new Lane(place, entry));
    const next = previous ? previous.next : this.#front;
    if (previous) previous.next = entry;
    else this.#front = entry;
    if (next) next.previous = entry;
    entry.previous = previous;
    entry.next = next;
    this.#size++;
    if (next) this.#changes++;
  }

  /** The index of the last lane that does not come after a place; -1 when all do. */
  #laneUpTo(place: number): number {
    let low = -1;
    let high = this.#lanes.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((this.#lanes[middle]?.place ?? Infinity) <= place) low = middle;
      else high = middle;
    }
    return low;
  }

  #waitingAt(level: number): number {
    const last = this.#laneUpTo(level + delayed);
    return [this.#lanes[last], this.#lanes[last - 1]].reduce(
      (sum, lane) => sum + (lane && lane.place >= level ? lane.size : 0),
      0,
    );
  }
}
