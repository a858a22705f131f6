/** How often it is tried, and when. */
export interface RetryRules {
  /** In all. */
  readonly attempts: number;
  /** From the first attempt to the second, more or less; each later time is five times the one before. */
  readonly firstMilliseconds: number;
}

const factor = 5;
const longestMilliseconds = 24 * 3_600_000;

/**
 * When to try again.
 *
 * @param attempt the one that has failed, from 1 on
 * @param retryAfter what the receiver asked for: it waits no less, up to a day
 * @param random from 0 to 1: those that failed together do not come together again
 */
export function retryAt(
  { firstMilliseconds }: RetryRules,
  attempt: number,
  retryAfter: string | undefined,
  { now, random }: { readonly now: number; readonly random: number },
): number {
  const backoff = firstMilliseconds * factor ** (attempt - 1) * (0.75 + random / 2);
  return now + Math.round(Math.min(longestMilliseconds, Math.max(backoff, asked(retryAfter, now))));
}

/** `Retry-After` as seconds or as a date; 0 without a sense. */
function asked(text: string | undefined, now: number): number {
  if (text === undefined) return 0;
  if (/^\d{1,9}$/u.test(text)) return Number(text) * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? 0 : Math.max(0, date - now);
}
