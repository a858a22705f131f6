import { createHash } from "node:crypto";
import type { Redis } from "../redis/connection.ts";
import { execute } from "../redis/execute.ts";
import { names } from "./names.ts";
import type { SequencePlace } from "./sequence-place.ts";

/** The pool worker that has a sequence, and where the next request for it stands. */
export interface BoundSequence extends SequencePlace {
  readonly poolWorker: string;
}

/** In one step, because requests of one sequence may come through several gateways. */
const next = `
local found = redis.call("hmget", KEYS[1], "worker", "token")
if not found[1] then return false end
redis.call("pexpire", KEYS[1], ARGV[1])
return { found[1], found[2], redis.call("hincrby", KEYS[1], "sent", 1) }`;

/** A START may have bound it anew. */
const release = `
if redis.call("hget", KEYS[1], "token") == ARGV[1] then redis.call("del", KEYS[1]) end`;

/** Keeps in Redis which pool worker has which sequence, for all gateways. */
export class SequenceBindings {
  readonly #pool: string;
  readonly #commands: Redis;

  constructor(pool: string, commands: Redis) {
    this.#pool = pool;
    this.#commands = commands;
  }

  /** Of the sequence with this correlation id. @param version the version's key */
  key(version: string, tenant: string, id: bigint | string): string {
    const subject = JSON.stringify([version, tenant, typeof id, String(id)]);
    const digest = createHash("sha256").update(subject).digest("base64url").slice(0, 32);
    return names.sequence(this.#pool, digest);
  }

  /** Whatever was bound before: the sequence begins anew, with the token of its START. */
  async bind(
    key: string,
    { poolWorker, token }: Omit<BoundSequence, "number">,
    keptMilliseconds: number,
  ): Promise<void> {
    await execute(
      this.#commands
        .multi()
        .del(key)
        .hset(key, "worker", poolWorker, "token", token)
        .pexpire(key, keptMilliseconds),
    );
  }

  /** Where the next request goes; undefined when the sequence is not open. */
  async next(key: string, keptMilliseconds: number): Promise<BoundSequence | undefined> {
    const found = await this.#commands.eval(next, 1, key, keptMilliseconds);
    if (!Array.isArray(found)) return undefined;
    const [poolWorker, token, number] = found;
    return { poolWorker: String(poolWorker), token: String(token), number: Number(number) };
  }

  async keep(key: string, keptMilliseconds: number): Promise<void> {
    await this.#commands.pexpire(key, keptMilliseconds);
  }

  /** The sequence of this START is over. */
  async release(key: string, token: string): Promise<void> {
    await this.#commands.eval(release, 1, key, token);
  }

  /** The sequence is over, whichever it was. */
  async remove(key: string): Promise<void> {
    await this.#commands.del(key);
  }
}
