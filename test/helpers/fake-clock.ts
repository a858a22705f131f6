import type { Clock } from "../../serving/clock.ts";

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

/** A clock that stands still until the test moves it. */
export class FakeClock implements Clock {
  #now = 1000;
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#now;
  }

  after(milliseconds: number, callback: () => void): () => void {
    const timer = { at: this.#now + milliseconds, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Timers that would still ring. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Moves on, lets every timer that is due ring in order, and lets the event loop take its turn after each. */
  async advance(milliseconds: number): Promise<void> {
    const until = this.#now + milliseconds;
    for (let next = this.#due(until); next; next = this.#due(until)) {
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
      await turn();
    }
    this.#now = until;
    await turn();
  }

  #due(until: number): Timer | undefined {
    return [...this.#timers]
      .filter((timer) => timer.at <= until)
      .toSorted((a, b) => a.at - b.at)[0];
  }
}

/** Resolves when the event loop has run what waits for the end of this turn. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
