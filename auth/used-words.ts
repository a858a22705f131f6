import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { Redis } from "../redis/connection.ts";

/** Remembers what may be used once, at least for as long as it could be used again. */
export interface UsedWords {
  /** True the first time. Rejects with UNAVAILABLE where nobody can tell. */
  use(nonce: string): boolean | Promise<boolean>;
}

const most = 500_000;

/**
 * Remembers in this process.
 *
 * @param now a monotonic clock, in milliseconds
 */
export function wordsInMemory(
  lifeMilliseconds: number,
  now: () => number = () => performance.now(),
): UsedWords {
  // Two sets that take turns: what is in the older one is forgotten all at once, not earlier than it may be.
  let [young, old] = [new Set<string>(), new Set<string>()];
  let turnedAt = now();
  return {
    use(nonce) {
      const age = now() - turnedAt;
      if (age >= lifeMilliseconds) {
        old = age >= 2 * lifeMilliseconds ? new Set() : young;
        young = new Set();
        turnedAt = now();
      }
      if (young.has(nonce) || old.has(nonce)) return false;
      if (young.size >= most) throw tooMany();
      young.add(nonce);
      return true;
    },
  };
}

/** Remembers in Redis, for all gateways. */
export function wordsInRedis(commands: Redis, lifeMilliseconds: number): UsedWords {
  return {
    async use(nonce) {
      const key = `tidepool:edge-words:${nonce}`;
      const done = await commands
        .set(key, 1, "PX", lifeMilliseconds, "NX")
        .catch((cause: unknown) => {
          throw cannotTell("cannot be looked up at the moment", cause);
        });
      return done === "OK";
    },
  };
}

function tooMany(): InferenceError {
  return cannotTell(`given ${most} within the time that they are good for, expected fewer`);
}

function cannotTell(reason: string, cause?: unknown): InferenceError {
  const text = `calls of the edge: ${reason}`;
  return new InferenceError(StatusCode.Unavailable, text, { cause, retryAfterSeconds: 1 });
}
