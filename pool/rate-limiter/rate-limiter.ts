import { type ResourceLimit, type ResourceNeed, Resources, resourceKey } from "./resources.ts";

/** What an instance asks of the limiter. */
export interface InstanceLimits {
  readonly needs: readonly ResourceNeed[];
  /** One with 2 runs half as often as one with 1, where not all can. */
  readonly priority: number;
}

/** An instance, as the limiter knows it. */
export interface LimitedSeat {
  /** False while it runs something or waits for its resources. */
  readonly free: boolean;
  /** Grows with what it has run: the seat with the least is the next. */
  readonly share: number;
  /** Runs a task when all resources of the instance are free, and holds them until it is over. */
  run<Result>(task: () => Promise<Result>): Promise<Result>;
}

/** The instances of one model version, as the limiter knows them. */
export interface LimitedSeats {
  /** In the order in which they were given. */
  readonly seats: readonly LimitedSeat[];
  /** Told whenever a seat has become free. */
  onFree(listener: () => void): void;
  /** They will run nothing more: what still waits gets its turn at once, to find its instance closed. */
  remove(): void;
}

/**
 * Lets instances of all models run only while the resources that they need are free. Who has run least, weighed by
 * priority, is next; what it still lacks is kept for it, so that nobody waits for ever behind those who need less.
 */
export class RateLimiter {
  readonly #resources: Resources;
  readonly #waiting = new Set<Seat>();
  /** The share of who ran last: nobody saves up turns while there is nothing to run. */
  #share = 0;
  #granting: NodeJS.Immediate | undefined;

  constructor(limits: readonly ResourceLimit[]) {
    this.#resources = new Resources(limits);
  }

  /** Takes in the instances of a version; throws INVALID_ARG when there is too little for one of them ever to run. */
  register(instances: readonly InstanceLimits[]): LimitedSeats {
    const needs = instances.map((instance) => instance.needs);
    this.#resources.add(needs);
    let listener: (() => void) | undefined;
    const seats = instances.map(
      (instance) =>
        new Seat(instance, {
          waits: (seat) => this.#wait(seat),
          ended: (held) => {
            this.#resources.giveBack(held);
            // Whoever is told of it now is in line before anybody's turn comes.
            listener?.();
            this.#grantLater();
          },
        }),
    );
    return {
      seats,
      onFree: (told) => void (listener = told),
      remove: () => {
        this.#resources.remove(needs);
        for (const seat of seats) seat.retire();
        this.#grantLater();
      },
    };
  }

  #wait(seat: Seat): void {
    seat.share = Math.max(seat.share, this.#share);
    this.#waiting.add(seat);
    this.#granting ??= setImmediate(() => this.#grant());
  }

  /** After those who have just been told have had their say. */
  #grantLater(): void {
    if (this.#granting) clearImmediate(this.#granting);
    this.#granting = setImmediate(() => this.#grant());
  }

  #grant(): void {
    this.#granting = undefined;
    const free = this.#resources.free();
    for (const seat of [...this.#waiting].toSorted((a, b) => a.share - b.share)) {
      let fits = true;
      for (const need of seat.needs) {
        const key = resourceKey(need);
        const left = (free.get(key) ?? 0) - need.count;
        free.set(key, left);
        if (left < 0) fits = false;
      }
      if (fits) this.#start(seat);
    }
  }

  #start(seat: Seat): void {
    this.#waiting.delete(seat);
    this.#resources.take(seat.needs);
    this.#share = Math.max(this.#share, seat.share);
    seat.start();
  }
}

interface SeatListener {
  waits(seat: Seat): void;
  ended(held: readonly ResourceNeed[]): void;
}

/** One task at a time, the others in their order. */
class Seat implements LimitedSeat {
  needs: readonly ResourceNeed[];
  share = 0;
  readonly #weight: number;
  readonly #listener: SeatListener;
  readonly #tasks: (() => void)[] = [];
  /** While it runs. */
  #held: readonly ResourceNeed[] | undefined;

  constructor({ needs, priority }: InstanceLimits, listener: SeatListener) {
    this.needs = needs;
    this.#weight = Math.max(1, priority);
    this.#listener = listener;
  }

  get free(): boolean {
    return !this.#held && this.#tasks.length === 0;
  }

  async run<Result>(task: () => Promise<Result>): Promise<Result> {
    await new Promise<void>((resolve) => {
      this.#tasks.push(resolve);
      if (!this.#held) this.#listener.waits(this);
    });
    try {
      return await task();
    } finally {
      const held = this.#held ?? [];
      this.#held = undefined;
      if (this.#tasks.length > 0) this.#listener.waits(this);
      this.#listener.ended(held);
    }
  }

  start(): void {
    this.#held = this.needs;
    this.share += this.#weight;
    this.#tasks.shift()?.();
  }

  retire(): void {
    this.needs = [];
  }
}
