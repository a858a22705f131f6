import type { Redis } from "../redis/connection.ts";

/** From this size on, bytes get a key of their own: lists and hashes are read many entries at a time. */
export const claimBytes = 1024 * 1024;
/** One value of Redis holds 512 MiB at most, and a large one keeps its only thread busy while it is sent. */
const chunkBytes = 16 * 1024 * 1024;

/** Keeps large bytes beside the queue, which carries only their key: a claim check. */
export class PayloadStore {
  readonly #commands: Redis;

  constructor(commands: Redis) {
    this.#commands = commands;
  }

  /** Resolves when all of it is in Redis, for as long as the given time. */
  async put(key: string, bytes: Buffer, keptMilliseconds: number): Promise<void> {
    await this.#commands.unlink(key);
    for (let at = 0; at < bytes.byteLength; at += chunkBytes) {
      await this.#commands.rpush(key, bytes.subarray(at, at + chunkBytes));
      await this.#commands.pexpire(key, keptMilliseconds);
    }
  }

  /** Undefined when it is not there, or no longer. */
  async get(key: string): Promise<Buffer | undefined> {
    const count = await this.#commands.llen(key);
    const chunks: Buffer[] = [];
    for (let index = 0; index < count; index++) {
      const chunk = await this.#commands.lindexBuffer(key, index);
      if (!chunk) return undefined;
      chunks.push(chunk);
    }
    return count === 0 ? undefined : Buffer.concat(chunks);
  }

  /** From now on it is kept for another time. */
  async keep(key: string, keptMilliseconds: number): Promise<void> {
    await this.#commands.pexpire(key, keptMilliseconds);
  }

  async remove(...keys: readonly string[]): Promise<void> {
    if (keys.length > 0) await this.#commands.unlink(...keys);
  }
}
