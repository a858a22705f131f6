/** How a pool worker's process ended. */
export interface WorkerExit {
  readonly id: string;
  /** Null when a signal ended it, or when it could not be started. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly lifetimeMilliseconds: number;
  /** It had been asked to end. */
  readonly expected: boolean;
  /** Why it could not be started. */
  readonly error?: Error;
}

/** What the early deaths of a pool's workers teach. */
export interface CrashHistory {
  /** Early deaths in a row. */
  readonly count: number;
  /** Epoch milliseconds; no worker is added before. */
  readonly waitUntil: number;
}

export const noCrashes: CrashHistory = { count: 0, waitUntil: 0 };

/** A worker that lived so long did not die of its start. */
const earlyMilliseconds = 5_000;
/** The first early death is replaced at once, the second after this, each further one after twice as long as the last. */
const firstWaitMilliseconds = 100;
const longestWaitMilliseconds = 30_000;
/** Deaths that lie further apart have nothing to do with each other. */
const memoryMilliseconds = 60_000;

/** Slows down the replacing of workers that die right after their start, so that a broken pool does not burn a machine. */
export function afterExit(history: CrashHistory, exit: WorkerExit, now: number): CrashHistory {
  if (exit.expected) return history;
  if (exit.lifetimeMilliseconds >= earlyMilliseconds) return noCrashes;
  const count = now > history.waitUntil + memoryMilliseconds ? 1 : history.count + 1;
  const wait = count === 1 ? 0 : firstWaitMilliseconds * 2 ** (count - 2);
  return { count, waitUntil: now + Math.min(wait, longestWaitMilliseconds) };
}
