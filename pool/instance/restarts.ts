import type { Clock } from "../../serving/clock.ts";

const firstBackoffMilliseconds = 100;
const longestBackoffMilliseconds = 30_000;

/** Plans the starts of what has ended without being told to, later and later while that keeps failing. */
export class Restarts {
  readonly #clock: Clock;
  readonly #restart: () => void;
  #backoffMilliseconds = firstBackoffMilliseconds;
  #cancel: (() => void) | undefined;
  #ended = false;

  constructor(clock: Clock, restart: () => void) {
    this.#clock = clock;
    this.#restart = restart;
  }

  /** True when nothing is to be started any more. */
  get ended(): boolean {
    return this.#ended;
  }

  later(): void {
    if (this.#ended) return;
    this.#cancel = this.#clock.after(this.#backoffMilliseconds, this.#restart);
    this.#backoffMilliseconds = Math.min(2 * this.#backoffMilliseconds, longestBackoffMilliseconds);
  }

  /** It works: the next time it ends it is started soon. */
  succeeded(): void {
    this.#backoffMilliseconds = firstBackoffMilliseconds;
  }

  end(): void {
    this.#ended = true;
    this.#cancel?.();
  }
}
