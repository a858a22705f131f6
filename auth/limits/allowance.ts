import type { Claim } from "./claim.ts";
import type { Points } from "./points.ts";

/** How long a window is, and when one ends. Times are milliseconds. */
export interface Period {
  /** As callers read it. */
  readonly seconds: number;
  /** Windows with equal texts are one. */
  name(now: number): string;
  readonly dated: boolean;
  /** Its points are kept so long. */
  readonly keptSeconds: number;
  /** @param milliseconds what is left by who counts its points */
  end(asked: number, milliseconds: number): number;
  /** So much of a window is taken for one process at a time. */
  readonly part: number;
  readonly now: () => number;
}

/** A second, which begins with the first call in it. @param now monotonic */
export function aSecond(now: () => number): Period {
  return {
    seconds: 1,
    name: () => "second",
    dated: false,
    keptSeconds: 1,
    // From before the question left, so that nothing is spent here that others may have again.
    end: (asked, milliseconds) => asked + milliseconds,
    part: 1 / 20,
    now,
  };
}

const dayMilliseconds = 86_400_000;

/** A day in UTC. @param now since the epoch */
export function aDay(now: () => number): Period {
  return {
    seconds: 86_400,
    name: (at) => new Date(at).toISOString().slice(0, 10),
    dated: true,
    // Clocks of gateways differ.
    keptSeconds: 2 * 86_400,
    end: (asked) => (Math.floor(asked / dayMilliseconds) + 1) * dayMilliseconds,
    part: 1 / 1000,
    now,
  };
}

/**
 * How much may be done in a window of time. What is spent here was taken out of the window before, in small parts, so that
 * most calls ask nobody, and all processes together never spend more than the window holds.
 */
export class Allowance implements Claim {
  readonly limit: number;
  readonly period: Period;
  readonly #points: Points;
  readonly #key: string;
  /** Taken out of the window, and not spent. */
  #own = 0;
  /** What others could still take, as it was seen last. */
  #others: number;
  #end = -Infinity;
  /** Nothing is left in the window but our own. */
  #over = false;
  #wanted = 0;
  #asking: Promise<void> | undefined;

  /** @param key whose work it bounds, and which */
  constructor(limit: number, period: Period, points: Points, key: string) {
    this.limit = limit;
    this.period = period;
    this.#points = points;
    this.#key = key;
    this.#others = limit;
  }

  /** What can be done in the window that is now, as far as this process knows. */
  get left(): number {
    this.#turn();
    return this.#own + this.#others;
  }

  /** Until all of it is there again. */
  get secondsLeft(): number {
    const { period } = this;
    const now = period.now();
    const end = now < this.#end ? this.#end : period.end(now, period.seconds * 1000);
    return (end - now) / 1000;
  }

  ready(count: number): boolean | Promise<void> {
    this.#turn();
    if (count <= this.#own) return true;
    if (this.#over || count > this.limit) return false;
    this.#wanted += count;
    this.#asking ??= this.#ask();
    return this.#asking;
  }

  spend(count: number): void {
    this.#own -= count;
  }

  /** What is kept of it in memory is not needed any more. */
  forget(): void {
    this.#points.forget(this.#keyAt(this.period.now()));
  }

  async #ask(): Promise<void> {
    const { limit, period } = this;
    // For all who come in this turn.
    await Promise.resolve();
    const asked = period.now();
    const wanted = Math.min(limit, Math.max(Math.ceil(limit * period.part), this.#wanted));
    const window = { limit, seconds: period.keptSeconds, dated: period.dated };
    const lease = await this.#points.lease(this.#keyAt(asked), wanted, window);
    this.#turn();
    this.#own += lease.points;
    this.#others = lease.left;
    this.#over = lease.points < wanted;
    this.#end = period.end(asked, lease.milliseconds);
    // A window that ended on the way: the next one begins in a moment.
    if (period.now() >= this.#end) await new Promise((resolve) => setTimeout(resolve, 1));
    this.#wanted = 0;
    this.#asking = undefined;
  }

  /** Forgets a window that is over, with what was left of it. */
  #turn(): void {
    if (this.period.now() < this.#end) return;
    this.#own = 0;
    this.#others = this.limit;
    this.#over = false;
    this.#end = -Infinity;
  }

  #keyAt(now: number): string {
    return `${this.#key}:${this.period.name(now)}`;
  }
}
