const windowMilliseconds = 5000;
/** In less time nothing can be told of a rate. */
const leastMilliseconds = 1000;

/** Tells how fast something goes away, from what has gone in the last five to ten seconds. Times are milliseconds. */
export class DrainRate {
  #since = -Infinity;
  #current = 0;
  #previous = 0;

  count(now: number, amount = 1): void {
    this.#turn(now);
    this.#current += amount;
  }

  /** 0 when nothing has gone lately. */
  perSecond(now: number): number {
    if (now - this.#since >= 2 * windowMilliseconds) return 0;
    this.#turn(now);
    const elapsed = now - this.#since;
    // Of the window before as much counts as is missing of this one.
    const rest = this.#previous > 0 ? windowMilliseconds - elapsed : 0;
    const gone = this.#current + (this.#previous * rest) / windowMilliseconds;
    return (gone * 1000) / Math.max(leastMilliseconds, elapsed + rest);
  }

  #turn(now: number): void {
    const elapsed = now - this.#since;
    if (elapsed < windowMilliseconds) return;
    this.#previous = elapsed < 2 * windowMilliseconds ? this.#current : 0;
    this.#current = 0;
    this.#since = elapsed < 2 * windowMilliseconds ? this.#since + windowMilliseconds : now;
  }
}
