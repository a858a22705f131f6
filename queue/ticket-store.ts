import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { Redis } from "../redis/connection.ts";
import { execute } from "../redis/execute.ts";
import { names } from "./names.ts";
import type { VersionTicket } from "./version-ticket.ts";

/** Longer than any pool worker stays away from a version that a gateway serves. */
const keptMilliseconds = 30 * 24 * 3_600_000;

/** Keeps in Redis what pool workers must know to start the versions of one pool. */
export class TicketStore {
  readonly #pool: string;
  readonly #commands: Redis;

  constructor(pool: string, commands: Redis) {
    this.#pool = pool;
    this.#commands = commands;
  }

  /** @param files those that came with the load request */
  async put(key: string, ticket: VersionTicket, files: Files | undefined): Promise<void> {
    const text = JSON.stringify(ticket);
    const pipeline = this.#commands.pipeline();
    if (files) {
      const fields = [...files].flatMap(([path, bytes]) => [path, Buffer.from(bytes)]);
      pipeline.hset(this.#filesKey(ticket), ...fields);
      pipeline.pexpire(this.#filesKey(ticket), keptMilliseconds);
    }
    pipeline.set(names.ticket(this.#pool, key), text, "PX", keptMilliseconds);
    await execute(pipeline);
  }

  /** The same for one that should be there, which costs little when it is. */
  async keep(key: string, ticket: VersionTicket, files: Files | undefined): Promise<void> {
    const pipeline = this.#commands
      .pipeline()
      .pexpire(names.ticket(this.#pool, key), keptMilliseconds);
    if (files) pipeline.pexpire(this.#filesKey(ticket), keptMilliseconds);
    const kept = await execute(pipeline);
    if (kept.includes(0)) await this.put(key, ticket, files);
  }

  async get(key: string): Promise<VersionTicket> {
    const text = await this.#commands.get(names.ticket(this.#pool, key));
    if (text !== null) return JSON.parse(text);
    throw new InferenceError(
      StatusCode.Unavailable,
      "the model version is not known to its pool any more; load the model again",
    );
  }

  /** The files that came with the load request. */
  async files(ticket: VersionTicket): Promise<Files> {
    return new Map(Object.entries(await this.#commands.hgetallBuffer(this.#filesKey(ticket))));
  }

  #filesKey({ fingerprint }: VersionTicket): string {
    return names.files(this.#pool, fingerprint);
  }
}

type Files = ReadonlyMap<string, Uint8Array>;
