import type { Clock } from "./clock.ts";

/**
 * One timer for all who wait: it rings at the earliest time it was asked for, and sometimes before, because asking
 * for a later time leaves it as it stands. Who is rung looks at the clock and asks again.
 */
export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #at = Infinity;
  #takeBack: (() => void) | undefined;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Asks to be rung at this time of the clock, in milliseconds; Infinity asks for nothing. */
  set(at: number, now: number): void {
    if (at >= this.#at) return;
    this.#takeBack?.();
    this.#at = at;
    this.#takeBack = this.#clock.after(Math.max(0, at - now), () => {
      this.#takeBack = undefined;
      this.#at = Infinity;
      this.#ring();
    });
  }

  cancel(): void {
    this.#takeBack?.();
    this.#takeBack = undefined;
    this.#at = Infinity;
  }
}
