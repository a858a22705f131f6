import { setTimeout as sleep } from "node:timers/promises";
import { isTransient, S3TransferError } from "./s3-error.ts";

/** How long one request is hoped for. */
export interface S3Patience {
  /** Tries of one request in all. */
  readonly attempts: number;
  /** Before the second try at most so long, before each further one twice as long. */
  readonly firstPauseMilliseconds: number;
  /** A try in which no byte comes for so long is given up. */
  readonly stallMilliseconds: number;
}

export const defaultPatience: S3Patience = {
  attempts: 6,
  firstPauseMilliseconds: 200,
  stallMilliseconds: 10_000,
};

const longestPauseMilliseconds = 10_000;

/** One try of a request: it obeys the signal, and tells when something has come. */
export type Attempt<T> = (signal: AbortSignal, alive: () => void) => Promise<T>;

/** Tries a request until it succeeds, fails for good, or patience is over; rejects with the last try's own error. */
export async function retrying<T>(
  patience: S3Patience,
  signal: AbortSignal | undefined,
  attempt: Attempt<T>,
): Promise<T> {
  for (let tried = 1; ; tried++) {
    signal?.throwIfAborted();
    try {
      return await unlessStalled(patience.stallMilliseconds, signal, attempt);
    } catch (error) {
      signal?.throwIfAborted();
      if (tried >= patience.attempts || !isTransient(error)) throw error;
      const pause = pauseMilliseconds(tried, patience.firstPauseMilliseconds, Math.random());
      await sleep(pause, undefined, { signal });
    }
  }
}

/**
 * Exponential with half of it random, so that those who failed together do not come back together.
 *
 * @param random at least 0 and below 1
 */
export function pauseMilliseconds(tried: number, first: number, random: number): number {
  const longest = Math.min(first * 2 ** (tried - 1), longestPauseMilliseconds);
  return longest * (0.5 + random / 2);
}

async function unlessStalled<T>(
  limitMilliseconds: number,
  outer: AbortSignal | undefined,
  attempt: Attempt<T>,
): Promise<T> {
  const stall = new AbortController();
  const error = new S3TransferError("Stalled", `no byte came for ${limitMilliseconds} ms`);
  const timer = setTimeout(() => stall.abort(error), limitMilliseconds);
  const signal = outer ? AbortSignal.any([outer, stall.signal]) : stall.signal;
  try {
    return await attempt(signal, () => void timer.refresh());
  } catch (cause) {
    throw stall.signal.aborted ? error : cause;
  } finally {
    clearTimeout(timer);
  }
}
