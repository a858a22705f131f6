import type { Observer } from "./observe.ts";
import { oneAtATime } from "./one-at-a-time.ts";

export interface WatchedPool {
  readonly pool: string;
  readonly observer: Observer;
  /** Asks whether the pool has anything to do; rejects when nobody knows. */
  readonly active: () => Promise<boolean>;
  /** How often it is asked beside the pushes; every second by default. */
  readonly pollMilliseconds?: number;
}

/** Tells at once whether a pool is active, and again the moment that changes; the result ends it. */
export function watchActivity(
  { pool, observer, active, pollMilliseconds = 1000 }: WatchedPool,
  tell: (active: boolean) => void,
): () => void {
  let last: boolean | undefined;
  const look = oneAtATime(async () => {
    // While nobody knows, the last word stands.
    const now = await active().catch(() => last);
    if (now === undefined || now === last) return;
    last = now;
    tell(now);
  });
  void look();
  const timer = setInterval(() => void look(), pollMilliseconds);
  const unsubscribe = observer.onDemand((pushed) => {
    // A pool that is awake leaves zero after every pause; the poll is enough for it.
    if (pushed === pool && last !== true) void look();
  });
  return () => {
    clearInterval(timer);
    unsubscribe();
  };
}
