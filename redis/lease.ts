import { randomUUID } from "node:crypto";
import type { Redis } from "./connection.ts";

/** What a lease is of, and who wants to know. */
export interface LeaseOptions {
  /** With the role `commands`. */
  readonly redis: Redis;
  readonly key: string;
  /** How long it is held without being renewed, which is how long nobody holds it after its owner died. */
  readonly lengthMilliseconds: number;
  /** Called when it is got and when it is lost. */
  readonly onChange?: (held: boolean) => void;
  /** A monotonic clock. @defaultValue performance.now */
  readonly now?: () => number;
}

/**
 * Lets one of many processes be the one that acts: it is got by whoever asks first, kept by renewing, and free again when
 * its owner closes it or dies.
 */
export class Lease {
  readonly #options: LeaseOptions;
  readonly #token = randomUUID();
  readonly #now: () => number;
  #heldUntil = -Infinity;
  #told = false;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;
  #expiry: NodeJS.Timeout | undefined;
  #asking: Promise<void>;

  /** Begins to ask for it. */
  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#asking = this.#ask();
  }

  /** True while nobody else can have it: ask right before acting. */
  get held(): boolean {
    return this.#now() < this.#heldUntil;
  }

  /** Gives it back, if Redis can be reached; otherwise it runs out. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#hold(-Infinity);
    await this.#asking;
    const { redis, key } = this.#options;
    await redis.eval(release, 1, key, this.#token).catch(() => {});
  }

  async #ask(): Promise<void> {
    const { redis, key, lengthMilliseconds } = this.#options;
    // Before the request leaves: Redis counts from later, so that it still holds what we no longer claim.
    const asked = this.#now();
    const got = await redis
      .eval(acquire, 1, key, this.#token, lengthMilliseconds)
      // What is held runs out by itself, and the connection tells of its outage.
      .catch(() => undefined);
    if (this.#closed) return;
    if (got !== undefined) this.#hold(got === 1 ? asked + lengthMilliseconds : -Infinity);
    this.#timer = setTimeout(() => (this.#asking = this.#ask()), lengthMilliseconds / 3);
  }

  #hold(until: number): void {
    this.#heldUntil = until;
    clearTimeout(this.#expiry);
    this.#tell();
  }

  /** Also when it runs out without an answer of Redis. */
  #tell(): void {
    const held = this.held;
    if (held) this.#expiry = setTimeout(() => this.#tell(), this.#heldUntil - this.#now());
    if (held === this.#told) return;
    this.#told = held;
    this.#options.onChange?.(held);
  }
}

/** Takes what is free, and renews what is ours. */
const acquire = `
local owner = redis.call("get", KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2])
return 1`;

const release = `
if redis.call("get", KEYS[1]) == ARGV[1] then redis.call("del", KEYS[1]) end`;
