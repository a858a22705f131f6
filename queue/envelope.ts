import type { Redis } from "../redis/connection.ts";
import { execute } from "../redis/execute.ts";
import { names } from "./names.ts";

/** What all requests of an envelope share. */
export interface EnvelopeHead {
  /** Key of the version that is to run them. */
  readonly version: string;
  /** Whom the replies go to. */
  readonly gateway: string;
  readonly tenant: string;
  /** The envelope that it was part of, which its gateway knows it by. */
  readonly origin?: string;
}

/** Requests for one version, of one tenant, as a pool worker finds them. */
export interface Envelope {
  readonly head: EnvelopeHead;
  /** By index; those that are missing were withdrawn. */
  readonly frames: ReadonlyMap<number, Buffer>;
}

const headField = "head";
const takenField = "taken";
/** Longer than any request may wait. */
const keptMilliseconds = 24 * 3_600_000;

/**
 * The envelopes of one pool in Redis: hashes with a field for each request, so that one that nobody waits for any more
 * leaves alone.
 */
export class Envelopes {
  readonly #pool: string;
  readonly #commands: Redis;

  constructor(pool: string, commands: Redis) {
    this.#pool = pool;
    this.#commands = commands;
  }

  async put(id: string, head: EnvelopeHead, frames: ReadonlyMap<number, Buffer>): Promise<void> {
    const key = this.#key(id);
    const fields = [...frames].flatMap(([index, frame]) => [String(index), frame]);
    await execute(
      this.#commands
        .pipeline()
        .hset(key, headField, JSON.stringify(head), ...fields)
        .pexpire(key, keptMilliseconds),
    );
  }

  /**
   * Takes out one request. False when a pool worker has taken the envelope before and may have read the request: it has
   * to be told.
   */
  async withdraw(id: string, index: number): Promise<boolean> {
    const key = this.#key(id);
    const pipeline = this.#commands.pipeline().hdel(key, String(index)).hexists(key, takenField);
    const [, taken] = await execute(pipeline);
    return taken === 0;
  }

  /** What is left of an envelope, for the pool worker that is to run it; undefined when nothing is. */
  async take(id: string): Promise<Envelope | undefined> {
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
    const frames = new Map(
      Object.entries(requests).map(([index, frame]) => [Number(index), frame]),
    );
    if (head && frames.size > 0) return { head: JSON.parse(head.toString()), frames };
    await this.remove(id);
    return undefined;
  }

  /** False for one that Redis has lost, or that is done. */
  async has(id: string): Promise<boolean> {
    return (await this.#commands.exists(this.#key(id))) === 1;
  }

  async remove(id: string): Promise<void> {
    await this.#commands.unlink(this.#key(id));
  }

  #key(id: string): string {
    return names.envelope(this.#pool, id);
  }
}
