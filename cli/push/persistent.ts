import { setTimeout as sleep } from "node:timers/promises";
import { HttpFailure } from "./http-call.ts";

export interface PersistentOptions {
  readonly attempts: number;
  /** A server that is busy (503) for so long is not asked again. */
  readonly busyMilliseconds?: number;
  /** Told why a try has failed, before the next one. */
  readonly onRetry: (reason: string) => void;
}

const firstPauseMilliseconds = 200;
const longestPauseMilliseconds = 10_000;
const passing: ReadonlySet<number> = new Set([408, 425, 429, 502, 503, 504]);

/** Tries again what may go well a little later: a server that is away or busy, a connection that broke off. */
export async function persistently<T>(
  attempt: () => Promise<T>,
  { attempts, busyMilliseconds = Infinity, onRetry }: PersistentOptions,
): Promise<T> {
  const began = performance.now();
  for (let tried = 1; ; tried++) {
    try {
      return await attempt();
    } catch (error) {
      if (tried >= attempts || !mayGoWell(error)) throw error;
      if (isBusy(error) && performance.now() - began >= busyMilliseconds) throw error;
      onRetry(error instanceof Error ? error.message : String(error));
      await sleep(pauseMilliseconds(error, tried, Math.random()));
    }
  }
}

function mayGoWell(error: unknown): boolean {
  if (error instanceof HttpFailure) return passing.has(error.answer.status);
  return error instanceof Error;
}

function isBusy(error: unknown): boolean {
  return error instanceof HttpFailure && error.answer.status === 503;
}

/** What the server says, or longer and longer; half of it random, so that many do not come back together. */
function pauseMilliseconds(error: unknown, tried: number, random: number): number {
  const told = error instanceof HttpFailure ? error.answer.retryAfterSeconds : undefined;
  if (told !== undefined) return Math.min(told * 1000, longestPauseMilliseconds);
  const longest = Math.min(firstPauseMilliseconds * 2 ** (tried - 1), longestPauseMilliseconds);
  return longest * (0.5 + random / 2);
}
