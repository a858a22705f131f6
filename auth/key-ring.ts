import { InferenceError, StatusCode } from "../protocol/error.ts";
import { modelPattern } from "../protocol/model-pattern.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Caller } from "./caller.ts";
import type { KeyRecord } from "./key-record.ts";
import type { KeyStore } from "./key-store.ts";
import { noLimits } from "./limits/limits.ts";

/** A key that may be shown. Times are milliseconds since the epoch. */
export interface KnownKey {
  readonly caller: Caller;
  readonly expiresAt: number;
  /** The digests of its texts: what it is now, and what it was before the last rotation. */
  readonly secrets: readonly { readonly digest: Buffer; readonly expiresAt: number }[];
}

export interface KeyRingOptions {
  readonly store: KeyStore;
  readonly log: Logger;
  /** @defaultValue 500 */
  readonly lookMilliseconds?: number;
  /** A monotonic clock, in milliseconds. @defaultValue performance.now */
  readonly now?: () => number;
}

/** What was seen so long ago lets nobody in: a key that is revoked is refused within two seconds, whatever is away. */
const freshMilliseconds = 1500;

/** All keys of a store in memory, never older than what a revocation may take. */
export class KeyRing {
  readonly #options: KeyRingOptions;
  readonly #now: () => number;
  readonly #endWatch: (() => void) | undefined;
  #keys: ReadonlyMap<string, KnownKey> = new Map();
  #version: string | undefined;
  #seenAt = -Infinity;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failing = false;
  #closed = false;

  private constructor(options: KeyRingOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#endWatch = options.store.watch?.(() => void this.#look().catch(() => {}));
  }

  /** Rejects when the keys cannot be read. */
  static async open(options: KeyRingOptions): Promise<KeyRing> {
    const ring = new KeyRing(options);
    try {
      await ring.#look();
    } catch (error) {
      ring.close();
      throw error;
    }
    ring.#lookLater();
    return ring;
  }

  get size(): number {
    return this.#keys.size;
  }

  /** False when the store was not seen for so long that `refresh` must look before anybody is let in. */
  get fresh(): boolean {
    return this.#now() - this.#seenAt < freshMilliseconds;
  }

  /** The key as it was seen last. */
  find(id: string): KnownKey | undefined {
    return this.#keys.get(id);
  }

  /** Rejects with UNAVAILABLE when the store cannot be seen. */
  async refresh(): Promise<void> {
    if (this.fresh) return;
    let cause: unknown;
    await this.#look().catch((error: unknown) => (cause = error));
    if (this.fresh) return;
    const text = "API keys cannot be looked up at the moment";
    throw new InferenceError(StatusCode.Unavailable, text, { cause, retryAfterSeconds: 1 });
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#endWatch?.();
  }

  #lookLater(): void {
    if (this.#closed) return;
    const look = async (): Promise<void> => {
      await this.#look().catch(() => {});
      this.#lookLater();
    };
    this.#timer = setTimeout(() => void look(), this.#options.lookMilliseconds ?? 500).unref();
  }

  /** One look at a time. Who asks amid one waits for the next, because that one may have begun before the change. */
  #look(): Promise<void> {
    if (!this.#running) {
      this.#running = this.#lookNow().finally(() => (this.#running = undefined));
      return this.#running;
    }
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.#look();
      });
    return this.#next;
  }

  async #lookNow(): Promise<void> {
    const { store, log } = this.#options;
    const began = this.#now();
    try {
      // Asked before the keys are read: a change between the two is seen by the next look.
      const version = await store.version();
      if (version !== this.#version) {
        this.#keys = new Map((await store.all()).map((record) => [record.id, knownKey(record)]));
        this.#version = version;
      }
    } catch (err) {
      if (!this.#failing) log.warn(`API keys in ${store.name} cannot be read`, { err });
      this.#failing = true;
      throw err;
    }
    if (this.#failing) log.info(`API keys in ${store.name} can be read again`);
    this.#failing = false;
    this.#seenAt = began;
  }
}

function knownKey(record: KeyRecord): KnownKey {
  const { id, name, tenant, scopes, models, limits = noLimits, previous } = record;
  const older = previous ? [secret(previous.sha256, previous.expiresAt)] : [];
  return {
    caller: {
      name: `key:${id}`,
      tenant,
      title: name,
      scopes: new Set(scopes),
      models: models.map(modelPattern),
      limits,
    },
    expiresAt: record.expiresAt ?? Infinity,
    secrets: [secret(record.sha256, Infinity), ...older],
  };
}

function secret(sha256: string, expiresAt: number): KnownKey["secrets"][number] {
  return { digest: Buffer.from(sha256, "hex"), expiresAt };
}
