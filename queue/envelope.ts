import type { Redis } from "../redis/connection.ts";
import { execute } from "../redis/execute.ts";
import { inOneWrite } from "../redis/one-write.ts";
import { names } from "./names.ts";
import { PayloadStore } from "./payload-store.ts";
import {
  decodeRequest,
  decodeRequests,
  type EncodedRequests,
  type SentRequest,
} from "./request-frame.ts";

/** What all requests of an envelope share. */
export interface EnvelopeHead {
  readonly tenant: string;
}

/** Requests for one version, of one tenant, as a pool worker finds them. */
export interface Envelope {
  readonly head: EnvelopeHead;
  /** By index; those that are missing were withdrawn. */
  readonly requests: ReadonlyMap<number, SentRequest>;
  /** Those that lie under keys of their own, by index. */
  readonly claimed: readonly number[];
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

/** Its requests, as one run of bytes. */
const bundleField = "requests";
/** How many of them nobody has taken back. */
const openField = "open";
/** A pool worker may have read it. */
const takenField = "taken";
/** Before the index of a request that was taken back. */
const withdrawnPrefix = "-";
/** Longer than any request may wait. */
const keptMilliseconds = 24 * 3_600_000;

/** In one step, because a pool worker may come in between: what it has read it answers, what it has not is gone. */
const withdraw = `
if ARGV[2] == "untaken" and redis.call("hexists", KEYS[1], "${takenField}") == 1 then return "taken" end
if redis.call("hexists", KEYS[1], "${openField}") == 0 then return "gone" end
if redis.call("hsetnx", KEYS[1], "${withdrawnPrefix}" .. ARGV[1], 1) == 0 then return "gone" end
redis.call("unlink", KEYS[2])
if redis.call("hincrby", KEYS[1], "${openField}", -1) > 0 then return "withdrawn" end
redis.call("unlink", KEYS[1])
return "emptied"`;

/** The envelopes of one pool in Redis: hashes with all requests in one field, and a mark for each that was taken back. */
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
   * Sends its commands before it returns, unless a request is claimed: then the envelope is there when it resolves, and
   * not before.
   *
   * @param requests how many there are
   */
  async put(id: string, { bundle, claimed }: EncodedRequests, requests: number): Promise<void> {
    const key = this.#key(id);
    for (const [index, payload] of claimed) {
      await this.#payloads.put(payloadKey(key, index), payload, keptMilliseconds);
    }
    inOneWrite(this.#commands);
    await Promise.all([
      this.#commands.hset(key, bundleField, bundle, openField, requests),
      this.#commands.pexpire(key, keptMilliseconds),
    ]);
  }

  /** Takes out one request, unless a pool worker may have read it. */
  withdraw(id: string, index: number): Promise<Withdrawal> {
    return this.#withdraw(id, index, "untaken");
  }

  /** Takes out a request that a pool worker may have read, so that none that takes the envelope over reads it again. */
  drop(id: string, index: number): Promise<Withdrawal> {
    return this.#withdraw(id, index, "");
  }

  async #withdraw(id: string, index: number, state: "untaken" | ""): Promise<Withdrawal> {
    const key = this.#key(id);
    const keys = [key, payloadKey(key, index)];
    const result = await this.#commands.eval(withdraw, keys.length, ...keys, index, state);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the script returns
    return result as Withdrawal;
  }

  /**
   * What is left of an envelope, for the pool worker that is to run it; undefined when nothing is.
   *
   * @param only this request, where each has a job of its own
   */
  async take(id: string, model: string, only?: number): Promise<Envelope | undefined> {
    const key = this.#key(id);
    // Marked before it is read: who withdraws a request and finds no mark knows that nobody has read it.
    inOneWrite(this.#commands);
    const [, , fields] = await Promise.all([
      this.#commands.hset(key, takenField, 1),
      this.#commands.pexpire(key, keptMilliseconds),
      this.#commands.hgetallBuffer(key),
    ]);
    const bundle = fields[bundleField];
    if (!bundle) return undefined;
    const { head, requests, claimed } = readEnvelope(bundle, model);
    for (const field of Object.keys(fields)) {
      if (field.startsWith(withdrawnPrefix)) requests.delete(Number(field.slice(1)));
    }
    if (only !== undefined) {
      for (const index of requests.keys()) if (index !== only) requests.delete(index);
    }
    for (const index of claimed) {
      if (only !== undefined && index !== only) continue;
      // One whose payload is gone was withdrawn.
      const payload = await this.#payloads.get(payloadKey(key, index));
      if (payload) requests.set(index, decodeRequest(payload, model));
    }
    return requests.size > 0 ? { head, requests, claimed } : undefined;
  }

  /**
   * Those that Redis has lost, or that are done.
   *
   * @param given ids, each with another key under which the envelope may be, or ""
   */
  async missing(
    given: readonly (readonly [id: string, other: string])[],
  ): Promise<ReadonlySet<string>> {
    const pipeline = this.#commands.pipeline();
    for (const [id, other] of given) pipeline.exists(this.#key(id), other || this.#key(id));
    const there = await execute(pipeline);
    return new Set(given.flatMap(([id], i) => (there[i] === 0 ? id : [])));
  }

  /**
   * Resolves when it is gone: its requests are answered.
   *
   * @param claimed those that lie under keys of their own, by index
   */
  async remove(id: string, claimed: readonly number[] = []): Promise<void> {
    const key = this.#key(id);
    await this.#commands.unlink(key, ...claimed.map((index) => payloadKey(key, index)));
  }

  #key(id: string): string {
    return names.envelope(this.#pool, id);
  }
}

/** What `encodeRequests` wrote of an envelope. */
export function readEnvelope(
  bundle: Buffer,
  model: string,
): Envelope & { readonly requests: Map<number, SentRequest> } {
  const { head, ...rest } = decodeRequests(bundle, model);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the envelope was made with
  return { head: head as EnvelopeHead, ...rest };
}

function payloadKey(envelopeKey: string, index: number): string {
  return `${envelopeKey}:${index}`;
}
