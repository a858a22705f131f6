import type { Redis } from "../redis/connection.ts";
import { execute } from "../redis/execute.ts";
import { names } from "./names.ts";
import { claimBytes, PayloadStore } from "./payload-store.ts";

/** What all requests of an envelope share. */
export interface EnvelopeHead {
  readonly tenant: string;
}

/** Requests for one version, of one tenant, as a pool worker finds them. */
export interface Envelope {
  readonly head: EnvelopeHead;
  /** By index; those that are missing were withdrawn. */
  readonly frames: ReadonlyMap<number, Buffer>;
}

/** What came of taking a request back. */
export type Withdrawal =
  /** No pool worker has it, and none will. */
  | "withdrawn"
  /** The same, and it was the last of its envelope, which is gone with it. */
  | "emptied"
  /** A pool worker has taken the envelope: it has to be told. */
  | "taken"
  /** There is no such request: it has been answered, or Redis has lost its envelope. */
  | "gone";

const headField = "head";
const takenField = "taken";
/** Of an envelope that was taken: head and mark. */
const fieldsWithoutRequests = 2;
/** In place of a large frame; no frame is empty. */
const claimCheck = Buffer.alloc(0);
const none: ReadonlyMap<number, Buffer> = new Map();
/** Longer than any request may wait. */
const keptMilliseconds = 24 * 3_600_000;

/** In one step, because a pool worker may come in between: what it has read it answers, what it has not is gone. */
const withdraw = `
if redis.call("hexists", KEYS[1], "${takenField}") == 1 then return "taken" end
if redis.call("hdel", KEYS[1], ARGV[1]) == 0 then return "gone" end
redis.call("unlink", KEYS[2])
if redis.call("hlen", KEYS[1]) > 1 then return "withdrawn" end
redis.call("del", KEYS[1])
return "emptied"`;

/** True for a frame that gets a key of its own. */
export function isClaimed(frame: Buffer): boolean {
  return frame.byteLength > claimBytes;
}

/**
 * The envelopes of one pool in Redis: hashes with a field for each request, so that one that nobody waits for any more
 * leaves alone.
 */
export class Envelopes {
  readonly #pool: string;
  readonly #commands: Redis;
  readonly #payloads: PayloadStore;

  constructor(pool: string, commands: Redis) {
    this.#pool = pool;
    this.#commands = commands;
    this.#payloads = new PayloadStore(commands);
  }

  /**
   * Sends its commands before it returns, unless a frame is large: then the envelope is there when it resolves, and not
   * before.
   */
  async put(id: string, head: EnvelopeHead, frames: ReadonlyMap<number, Buffer>): Promise<void> {
    const key = this.#key(id);
    const claimed = claimedOf(frames);
    for (const [index, frame] of claimed) {
      await this.#payloads.put(payloadKey(key, index), frame, keptMilliseconds);
    }
    const fields = [...frames].flatMap(([index, frame]) => [
      String(index),
      claimed.has(index) ? claimCheck : frame,
    ]);
    await execute(
      this.#commands
        .pipeline()
        .hset(key, headField, JSON.stringify(head), ...fields)
        .pexpire(key, keptMilliseconds),
    );
  }

  /** Takes out one request, unless a pool worker may have read it. */
  async withdraw(id: string, index: number): Promise<Withdrawal> {
    const key = this.#key(id);
    const result = await this.#commands.eval(withdraw, 2, key, payloadKey(key, index), index);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the script returns
    return result as Withdrawal;
  }

  /** Takes out a request that a pool worker may have read, so that none that takes the envelope over reads it again. */
  async drop(id: string, index: number): Promise<void> {
    const key = this.#key(id);
    const pipeline = this.#commands.pipeline().hdel(key, String(index));
    await execute(pipeline.unlink(payloadKey(key, index)));
  }

  /**
   * What is left of an envelope, for the pool worker that is to run it; undefined when nothing is.
   *
   * @param only this request, where each has a job of its own
   */
  async take(id: string, only?: number): Promise<Envelope | undefined> {
    const key = this.#key(id);
    // Marked before it is read: who withdraws a request and finds no mark knows that nobody has read it.
    const pipeline = this.#commands
      .pipeline()
      .hset(key, takenField, 1)
      .pexpire(key, keptMilliseconds)
      .hgetallBuffer(key);
    const results = await execute(pipeline);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what HGETALL gives as buffers
    const fields = results[2] as Readonly<Record<string, Buffer>>;
    const { [headField]: head, [takenField]: _, ...requests } = fields;
    const frames = await this.#frames(key, requests, only);
    return head && frames.size > 0 ? { head: JSON.parse(head.toString()), frames } : undefined;
  }

  /** With what was too large for the hash; a request whose payload is gone was withdrawn. */
  async #frames(
    key: string,
    fields: Readonly<Record<string, Buffer>>,
    only: number | undefined,
  ): Promise<ReadonlyMap<number, Buffer>> {
    const frames = new Map<number, Buffer>();
    for (const [field, value] of Object.entries(fields)) {
      const index = Number(field);
      if (only !== undefined && index !== only) continue;
      const frame = value.equals(claimCheck)
        ? await this.#payloads.get(payloadKey(key, index))
        : value;
      if (frame) frames.set(index, frame);
    }
    return frames;
  }

  /** Those that Redis has lost, or that are done. */
  async missing(ids: readonly string[]): Promise<readonly string[]> {
    const pipeline = this.#commands.pipeline();
    for (const id of ids) pipeline.exists(this.#key(id));
    const there = await execute(pipeline);
    return ids.filter((_, i) => there[i] === 0);
  }

  /** Its requests are answered. @param frames those that it may still have */
  async remove(id: string, frames: ReadonlyMap<number, Buffer> = none): Promise<void> {
    const key = this.#key(id);
    const claimed = [...claimedOf(frames).keys()].map((index) => payloadKey(key, index));
    await this.#commands.unlink(key, ...claimed);
  }

  /** One of its requests, which has a job of its own, is answered. */
  async removeOne(id: string, index: number): Promise<void> {
    await this.drop(id, index);
    const left = await this.#commands.hlen(this.#key(id));
    if (left <= fieldsWithoutRequests) await this.remove(id);
  }

  #key(id: string): string {
    return names.envelope(this.#pool, id);
  }
}

function claimedOf(frames: ReadonlyMap<number, Buffer>): ReadonlyMap<number, Buffer> {
  return new Map([...frames].filter(([, frame]) => isClaimed(frame)));
}

function payloadKey(envelopeKey: string, index: number): string {
  return `${envelopeKey}:${index}`;
}
