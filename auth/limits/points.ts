import type { RateLimiterAbstract } from "rate-limiter-flexible";
import { RateLimiterMemory, RateLimiterRedis } from "rate-limiter-flexible";
import type { Redis } from "../../redis/connection.ts";

/** What is bounded over a time. */
export interface Window {
  /** So many points in it. */
  readonly limit: number;
  readonly seconds: number;
  /** Its key is that of no other window, so that what is given back to it gets into no other. */
  readonly dated: boolean;
}

/** Points that were taken out of a window for one process, which spends them without asking again. */
export interface Lease {
  /** 0 when the window is used up. */
  readonly points: number;
  /** What is left in the window for everybody. */
  readonly left: number;
  /** Until the window ends, from when the points were asked for. */
  readonly milliseconds: number;
}

/** Counts what is taken out of windows, for this process or for all gateways together. */
export interface Points {
  /** Takes as many as are left, up to the wanted; never gives out more than the window holds. */
  lease(key: string, wanted: number, window: Window): Promise<Lease>;
  /** Who keeps points in memory may forget this one. */
  forget(key: string): void;
}

/** Points of this process alone. */
export function memoryPoints(): Points {
  const limiter = new RateLimiterMemory({ ...anyWindow, keyPrefix: "" });
  return {
    lease: (key, wanted, window) => lease(limiter, key, wanted, window),
    forget: (key) => void limiter.delete(key),
  };
}

/**
 * Points of all gateways that share a Redis. While it is away each gateway keeps to its share of every window.
 *
 * @param gateways how many there are
 */
export function redisPoints(commands: Redis, gateways: () => number): Points {
  const limiter = new RateLimiterRedis({
    ...anyWindow,
    storeClient: commands,
    keyPrefix: "tidepool:limits",
    rejectIfRedisNotReady: true,
  });
  const away = memoryPoints();
  return {
    async lease(key, wanted, window) {
      try {
        return await lease(limiter, key, wanted, window);
      } catch {
        return away.lease(key, wanted, { ...window, limit: shareOf(window.limit, gateways()) });
      }
    },
    forget: (key) => away.forget(key),
  };
}

/** One gateway's part of a bound, where it cannot ask the others. */
export function shareOf(limit: number, gateways: number): number {
  return Math.max(1, Math.floor(limit / Math.max(1, gateways)));
}

/** Each lease says how long its window is, and what is left of it is worked out here. */
const anyWindow = { points: 1, duration: 1 };

async function lease(
  limiter: RateLimiterAbstract,
  key: string,
  wanted: number,
  { limit, seconds, dated }: Window,
): Promise<Lease> {
  const lasting = { customDuration: seconds };
  const { consumedPoints, msBeforeNext } = await limiter.penalty(key, wanted, lasting);
  const points = Math.min(wanted, Math.max(0, limit - (consumedPoints - wanted)));
  // Otherwise it would be missing should the limit be raised; a window that is over soon need not mind.
  if (dated && points < wanted) await limiter.reward(key, wanted - points, lasting);
  return {
    points,
    left: Math.max(0, limit - consumedPoints),
    milliseconds: Math.max(0, msBeforeNext),
  };
}
