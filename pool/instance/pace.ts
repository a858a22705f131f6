/** More than this is never put ahead of a running execution, */
const maxRunning = 32;
/** nor more than this much work. */
const maxRunningNanoseconds = 1_000_000;
/** How much the newest duration counts in the mean of the recent ones. */
const newestShare = 0.2;

/** Knows how long executions of an instance take, and so how many may be handed over before the first has ended. */
export class Pace {
  /** Until it is known: nothing is put ahead of an execution that may take long. */
  #meanNanoseconds = maxRunningNanoseconds;

  took(nanoseconds: number): void {
    this.#meanNanoseconds += newestShare * (nanoseconds - this.#meanNanoseconds);
  }

  /** @param running executions handed over and not answered, one at least */
  allowsBehind(running: number): boolean {
    return running < maxRunning && running * this.#meanNanoseconds < maxRunningNanoseconds;
  }
}
