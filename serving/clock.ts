/** Time as an argument, so that a test can hold it in its hands. */
export interface Clock {
  /** Milliseconds, monotonic, with fractions. */
  now(): number;
  /** Calls back once, not before so many milliseconds have passed; the result takes it back. */
  after(milliseconds: number, callback: () => void): () => void;
}

/** Timers count whole milliseconds and are late by up to one. */
const timerSlackMilliseconds = 1;
/** A longer timer would fire at once. */
const longestTimerMilliseconds = 2 ** 31 - 1;

/**
 * The machine's clock. A queue delay of 100 µs is common and too short for a timer, so the last stretch is not slept
 * but watched, once in every turn of the event loop.
 */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(milliseconds, callback) {
    const dueAt = performance.now() + milliseconds;
    let takeBack: () => void;
    const look = (): void => {
      const rest = dueAt - performance.now();
      if (rest <= 0) callback();
      else wait(rest);
    };
    const wait = (rest: number): void => {
      const sleep = Math.min(rest - timerSlackMilliseconds, longestTimerMilliseconds);
      if (sleep < 1) {
        const turn = setImmediate(look);
        takeBack = () => clearImmediate(turn);
      } else {
        const timer = setTimeout(look, sleep);
        takeBack = () => clearTimeout(timer);
      }
    };
    wait(milliseconds);
    return () => takeBack();
  },
};
