/** Time as an argument, so that a test can hold it in its hands. */
export interface Clock {
  /** Milliseconds, monotonic, with fractions. */
  now(): number;
  /** Calls back once, not before so many milliseconds have passed; the result takes it back. */
  after(milliseconds: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  after(milliseconds, callback) {
    const timer = setTimeout(callback, milliseconds);
    return () => clearTimeout(timer);
  },
};
