import { setTimeout as sleep } from "node:timers/promises";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import { connect, type Redis } from "../redis/connection.ts";
import { deleteMatching, literally } from "../redis/delete-matching.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type CachedResponse, tensorBytes } from "./cached-response.ts";
import { decodeResponse, encodeResponse, type StoredResponse } from "./response-frame.ts";

export interface RedisTierOptions {
  readonly url: string;
  readonly ttlMilliseconds: number;
  readonly log: Logger;
}

/** A request waits no longer than this for an answer that may be here: then it is run. */
const lookupMilliseconds = 100;
/** After a lookup that failed, nobody waits for one for so long. */
const pauseMilliseconds = 1000;
const reconnectMilliseconds = 5000;
/** What is larger costs more on its way than it saves. */
const maxResponseBytes = 16 * 1024 * 1024;
/** A Redis that takes answers more slowly than they come must not fill this process. */
const maxUnwrittenBytes = 64 * 1024 * 1024;
/** Keys end with a hash of so many characters. */
const keyCharacters = 43;

/**
 * Keeps answers in a Redis that several servers share, which may evict whatever it likes and be away whenever it likes:
 * then nothing is found, and nothing is kept.
 */
export class RedisTier {
  readonly #options: RedisTierOptions;
  readonly #closing = new AbortController();
  #redis: Redis | undefined;
  #pausedUntil = 0;
  #unwrittenBytes = 0;

  /** Connects as soon as it can; until then it is empty. */
  constructor(options: RedisTierOptions) {
    this.#options = options;
    void this.#connect();
  }

  /** Never rejects, and never takes long. */
  async get(modelName: string, key: string): Promise<StoredResponse | undefined> {
    const redis = this.#redis;
    if (!redis || performance.now() < this.#pausedUntil) return undefined;
    const timer = new AbortController();
    try {
      const late = sleep(lookupMilliseconds, "late" as const, { signal: timer.signal });
      const found = await Promise.race([redis.getBuffer(redisKey(modelName, key)), late]);
      if (found === "late") throw new Error("Redis answers too late");
      return found === null ? undefined : readable(found);
    } catch {
      this.#pausedUntil = performance.now() + pauseMilliseconds;
      return undefined;
    } finally {
      timer.abort();
    }
  }

  /** Keeps an answer if that can be done; nobody waits for it. */
  set(key: string, response: CachedResponse): void {
    const redis = this.#redis;
    const bytes = tensorBytes(response);
    if (!redis || bytes > maxResponseBytes || this.#unwrittenBytes + bytes > maxUnwrittenBytes) {
      return;
    }
    const { ttlMilliseconds } = this.#options;
    const frame = encodeResponse({ response, expiresAt: Date.now() + ttlMilliseconds });
    this.#unwrittenBytes += bytes;
    redis
      .set(redisKey(response.modelName, key), frame, "PX", ttlMilliseconds)
      .catch(() => {})
      .finally(() => (this.#unwrittenBytes -= bytes));
  }

  /** Forgets all answers of a model; rejects when Redis cannot be asked to. */
  async flush(modelName: string): Promise<void> {
    if (!this.#redis) {
      throw new InferenceError(StatusCode.Unavailable, "the Redis of the response cache is away");
    }
    const pattern = literally(redisKey(modelName, "")) + "?".repeat(keyCharacters);
    await deleteMatching(this.#redis, pattern);
  }

  close(): void {
    this.#closing.abort();
    this.#redis?.disconnect();
  }

  async #connect(): Promise<void> {
    const { url, log } = this.#options;
    const outages = {
      onAway: (text: string) => log.warn(`responses are not shared: ${text}`),
      onBack: (text: string) => log.info(`responses are shared again: ${text}`),
    };
    const { signal } = this.#closing;
    for (let told = false; !signal.aborted; told = true) {
      try {
        this.#redis = await connect(url, "commands", outages);
        if (signal.aborted) this.#redis.disconnect();
        return;
      } catch (err) {
        if (!told) log.warn("responses are not shared: the cache's Redis is away", { err });
        await sleep(reconnectMilliseconds, undefined, { signal }).catch(() => {});
      }
    }
  }
}

/** Whatever may stand there: only what can be read. */
function readable(frame: Buffer): StoredResponse | undefined {
  try {
    return decodeResponse(frame);
  } catch {
    return undefined;
  }
}

function redisKey(modelName: string, key: string): string {
  return `tidepool:cache:${modelName}:${key}`;
}
