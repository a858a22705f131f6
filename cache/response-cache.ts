import { type CachedResponse, ownCopy } from "./cached-response.ts";
import type { MemoryTier } from "./memory-tier.ts";
import type { RedisTier } from "./redis-tier.ts";

/** What the cache asks of a tier outside of this process. */
export type SharedTier = Pick<RedisTier, "get" | "set" | "flush">;

/** Where answers are kept: at least one of them. */
export interface CacheTiers {
  readonly memory?: MemoryTier | undefined;
  readonly redis?: SharedTier | undefined;
}

/** Keeps answers by the key of their requests: in this process, in a Redis that others share, or in both. */
export class ResponseCache {
  readonly #memory: MemoryTier | undefined;
  readonly #redis: SharedTier | undefined;

  constructor({ memory, redis }: CacheTiers) {
    this.#memory = memory;
    this.#redis = redis;
  }

  /** True when an answer that {@link find} does not have may be elsewhere. */
  get isShared(): boolean {
    return this.#redis !== undefined;
  }

  /** An answer that is in this process. */
  find(key: string): CachedResponse | undefined {
    return this.#memory?.get(key);
  }

  /** An answer that is outside of this process; never rejects, and never takes long. */
  async fetch(modelName: string, key: string): Promise<CachedResponse | undefined> {
    const stored = await this.#redis?.get(modelName, key);
    if (!stored) return undefined;
    this.#memory?.set(key, ownCopy(stored.response), stored.expiresAt - Date.now());
    return stored.response;
  }

  keep(key: string, response: CachedResponse): void {
    const own = ownCopy(response);
    this.#memory?.set(key, own);
    this.#redis?.set(key, own);
  }

  /** Forgets what this process has of a model. */
  forget(modelName: string): void {
    this.#memory?.flush(modelName);
  }

  /** The same of every model. */
  forgetAll(): void {
    this.#memory?.clear();
  }

  /** Forgets what all who share the cache have of a model, but for what is in their memory. */
  async flush(modelName: string): Promise<void> {
    this.forget(modelName);
    await this.#redis?.flush(modelName);
  }
}
