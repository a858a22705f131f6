import { DeadlineHeap, type Expiring } from "../../serving/deadline-heap.ts";
import type { PendingRequest } from "../../serving/scheduler.ts";

/** A request in line. Only its queue changes what can be changed here. */
export interface QueuedRequest extends Expiring {
  readonly pending: PendingRequest;
  queued: boolean;
  next: QueuedRequest | undefined;
  previous: QueuedRequest | undefined;
}

/** Requests in the order in which they came, any of which may leave from the middle at any time. */
export class PendingQueue {
  readonly #deadlines = new DeadlineHeap<QueuedRequest>();
  #front: QueuedRequest | undefined;
  #back: QueuedRequest | undefined;
  #size = 0;
  #departures = 0;

  get size(): number {
    return this.#size;
  }

  get front(): QueuedRequest | undefined {
    return this.#front;
  }

  /** Grows whenever a request leaves: who remembers a place in the line compares it. */
  get departures(): number {
    return this.#departures;
  }

  /** When the first of those with a timeout has to leave, on the scheduler's clock; Infinity when none has one. */
  get nextDeadline(): number {
    return this.#deadlines.first?.deadline ?? Infinity;
  }

  push(pending: PendingRequest): QueuedRequest {
    const { timeoutMicroseconds } = pending.request;
    const deadline =
      timeoutMicroseconds > 0 ? pending.enqueuedAt + timeoutMicroseconds / 1000 : Infinity;
    const entry = {
      pending,
      deadline,
      slot: -1,
      queued: true,
      next: undefined,
      previous: this.#back,
    };
    if (this.#back) this.#back.next = entry;
    else this.#front = entry;
    this.#back = entry;
    this.#size++;
    if (deadline !== Infinity) this.#deadlines.add(entry);
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

  /** Takes out one that has to leave by now. */
  takeExpired(now: number): PendingRequest | undefined {
    const first = this.#deadlines.first;
    if (!first || first.deadline > now) return undefined;
    this.remove(first);
    return first.pending;
  }

  /** Takes one out wherever it stands; false when it has left before. */
  remove(entry: QueuedRequest): boolean {
    if (!entry.queued) return false;
    const { previous, next } = entry;
    if (previous) previous.next = next;
    else this.#front = next;
    if (next) next.previous = previous;
    else this.#back = previous;
    entry.queued = false;
    entry.next = entry.previous = undefined;
    this.#deadlines.remove(entry);
    this.#size--;
    this.#departures++;
    return true;
  }
}
