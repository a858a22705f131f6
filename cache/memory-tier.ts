import { LRUCache } from "lru-cache";
import { type CachedResponse, tensorBytes } from "./cached-response.ts";

export interface MemoryTierOptions {
  readonly maxBytes: number;
  /** How long an answer is kept at most; absent: until others need its place. */
  readonly ttlMilliseconds?: number;
}

/** What a scrape reads of it. */
export interface MemoryTierObservation {
  readonly entries: number;
  readonly bytes: number;
  readonly maxBytes: number;
  /** Answers that made room for others. */
  readonly evictions: number;
}

/** About what an answer takes beside its tensors: its objects, its key and its place in the list. */
const entryBytes = 1024;

/** Keeps answers in this process, up to so many bytes; those that nobody has asked for longest make room. */
export class MemoryTier {
  readonly #options: MemoryTierOptions;
  readonly #entries: LRUCache<string, CachedResponse>;
  #evictions = 0;

  constructor(options: MemoryTierOptions) {
    this.#options = options;
    this.#entries = new LRUCache<string, CachedResponse>({
      maxSize: options.maxBytes,
      ttl: options.ttlMilliseconds ?? 0,
      disposeAfter: (_response, _key, reason) => {
        if (reason === "evict") this.#evictions++;
      },
    });
  }

  get(key: string): CachedResponse | undefined {
    return this.#entries.get(key);
  }

  /**
   * Keeps an answer, unless it is larger than the whole tier.
   *
   * @param milliseconds how long it is good for, if that is known
   */
  set(key: string, response: CachedResponse, milliseconds = Infinity): void {
    const ttl = Math.min(milliseconds, this.#options.ttlMilliseconds ?? Infinity);
    this.#entries.set(key, response, {
      size: entryBytes + tensorBytes(response),
      ...(ttl !== Infinity && { ttl: Math.max(1, Math.floor(ttl)) }),
    });
  }

  /** Forgets all answers of a model. */
  flush(modelName: string): void {
    for (const [key, response] of this.#entries.entries())
      if (response.modelName === modelName) this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  observe(): MemoryTierObservation {
    const { size: entries, calculatedSize: bytes } = this.#entries;
    return { entries, bytes, maxBytes: this.#options.maxBytes, evictions: this.#evictions };
  }
}
