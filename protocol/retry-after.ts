/** What stands before a request that was refused for want of room. */
export interface Backlog {
  readonly waiting: number;
  /** In the same unit. */
  readonly drainedPerSecond: number;
  /** Where what waits may wait for the start of its model. */
  readonly coldStart?: {
    /** What it took when it was last seen. */
    readonly usualMilliseconds: number;
    /** How long this one has lasted. */
    readonly elapsedMilliseconds: number;
  };
}

/** Nobody plans further ahead than what is measured over seconds can tell. */
const mostSeconds = 300;
/** While nothing is known. */
const guessedSeconds = 5;

/**
 * When another try has a chance, in whole seconds from 1: when what waits now will be through at the pace at which it goes.
 * While nothing goes, that is when the model's cold start will be over by what such a start took before.
 */
export function retryAfterSeconds({ waiting, drainedPerSecond, coldStart }: Backlog): number {
  return Math.min(
    mostSeconds,
    Math.max(1, Math.ceil(seconds(waiting, drainedPerSecond, coldStart))),
  );
}

function seconds(
  waiting: number,
  drainedPerSecond: number,
  coldStart: Backlog["coldStart"],
): number {
  if (drainedPerSecond > 0) return waiting / drainedPerSecond;
  if (!coldStart) return guessedSeconds;
  const left = coldStart.usualMilliseconds - coldStart.elapsedMilliseconds;
  return left > 0 ? left / 1000 : guessedSeconds;
}
