import type { Expiring } from "../../serving/deadline-heap.ts";
import type { PendingRequest } from "../../serving/scheduler.ts";

/** A request in line. Only its queue changes what can be changed here. */
export interface QueuedRequest extends Expiring {
  readonly pending: PendingRequest;
  /** Who takes turns with others; the same for all where nobody does. */
  readonly tenant: string;
  /** When its time is over it goes behind the others of its level instead of leaving. */
  readonly delays: boolean;
  /** Undefined once it has left. */
  lane: Lane | undefined;
  /** Those of its lane stand in the order of their rounds. */
  round: number;
  next: QueuedRequest | undefined;
  previous: QueuedRequest | undefined;
}

/** What one of several tenants has in a lane: never nothing. */
interface Flow {
  back: QueuedRequest;
  size: number;
}

/** What a lane must know of several tenants. */
interface Turns {
  readonly flows: Map<string, Flow>;
  /** The last of each round in which there were several at a time. */
  readonly backs: Map<number, QueuedRequest>;
}

/**
 * A stretch of the line, never empty, in which tenants take turns: each has one request in a round, and those of a round
 * stand as they came. Who has none in the lane begins with the round at its front, so that nobody saves up turns.
 */
export class Lane {
  /** Its priority level, and a half more for those of the level that are delayed: the least is at the front. */
  readonly place: number;
  #front: QueuedRequest;
  #back: QueuedRequest;
  #size = 1;
  /** While there are several tenants. With one alone each request is a round. */
  #turns: Turns | undefined;

  constructor(place: number, first: QueuedRequest) {
    this.place = place;
    this.#front = first;
    this.#back = first;
    first.lane = this;
    first.round = 0;
  }

  get back(): QueuedRequest {
    return this.#back;
  }

  get size(): number {
    return this.#size;
  }

  /** Takes in a request that is in no line yet, and gives the one behind which it is to stand. */
  add(entry: QueuedRequest): QueuedRequest {
    const turns = this.#turns ?? (entry.tenant === this.#back.tenant ? undefined : this.#share());
    const before = turns ? this.#turnBehind(entry, turns) : this.#back;
    if (!turns) entry.round = before.round + 1;
    if (before === this.#back) this.#back = entry;
    entry.lane = this;
    this.#size++;
    return before;
  }

  /** Lets go of a request that is still in line, but the last. */
  remove(entry: QueuedRequest): void {
    const { previous, next } = entry;
    this.#size--;
    if (this.#size === 0) return;
    if (this.#turns) this.#leave(entry, this.#turns);
    if (entry === this.#front && next) this.#front = next;
    if (entry === this.#back && previous) this.#back = previous;
  }

  #share(): Turns {
    const flow = { back: this.#back, size: this.#size };
    return (this.#turns = { flows: new Map([[this.#back.tenant, flow]]), backs: new Map() });
  }

  #turnBehind(entry: QueuedRequest, { flows, backs }: Turns): QueuedRequest {
    const own = flows.get(entry.tenant);
    const round = own ? own.back.round + 1 : this.#front.round;
    const earlier = own && (backs.get(own.back.round) ?? own.back);
    const alone = earlier ? earlier.next : this.#front;
    const isOpen = alone?.lane === this && alone.round === round;
    const before = backs.get(round) ?? (isOpen ? alone : (earlier ?? this.#front));
    if (before.round === round) backs.set(round, entry);
    entry.round = round;
    if (own) {
      own.back = entry;
      own.size++;
    } else {
      flows.set(entry.tenant, { back: entry, size: 1 });
    }
    return before;
  }

  #leave(entry: QueuedRequest, { flows, backs }: Turns): void {
    const { tenant, round, previous } = entry;
    if (backs.get(round) === entry) {
      if (previous?.lane === this && previous.round === round) backs.set(round, previous);
      else backs.delete(round);
    }
    const flow = flows.get(tenant);
    if (!flow) return;
    flow.size--;
    if (flow.size === 0) flows.delete(tenant);
    else if (flow.back === entry) flow.back = lastOf(tenant, previous) ?? entry;
    if (flows.size === 1) this.#turns = undefined;
  }
}

/** The last request of a tenant that is not behind another. */
function lastOf(tenant: string, from: QueuedRequest | undefined): QueuedRequest | undefined {
  let entry = from;
  while (entry && entry.tenant !== tenant) entry = entry.previous;
  return entry;
}
