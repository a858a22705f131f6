import type { Redis } from "../redis/connection.ts";
import { names } from "./names.ts";

/** What a pool worker says of itself. */
export interface PoolWorkerWord {
  readonly id: string;
  readonly state: "starting" | "ready" | "draining";
  /** Requests in hand. */
  readonly inFlight: number;
  /** Sequences that are open there, whose next requests can run nowhere else. */
  readonly sequences: number;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Keys of the versions it has loaded. */
  readonly resident: readonly string[];
  /** Those of them that it cannot run now. */
  readonly down?: readonly string[];
}

interface DatedWord extends PoolWorkerWord {
  readonly at: number;
}

/** A pool worker that has said nothing for so long is gone. */
const silentMilliseconds = 5000;

/** Who works for a pool: each pool worker says so again and again, and silence means that it is gone. */
export class Presence {
  readonly #key: string;
  readonly #commands: Redis;

  constructor(pool: string, commands: Redis) {
    this.#key = names.poolWorkers(pool);
    this.#commands = commands;
  }

  async say(word: PoolWorkerWord, now: number): Promise<void> {
    const dated: DatedWord = { ...word, at: now };
    await this.#commands.hset(this.#key, word.id, JSON.stringify(dated));
  }

  async leave(id: string): Promise<void> {
    await this.#commands.hdel(this.#key, id);
  }

  /** @param now milliseconds since the epoch */
  async present(now: number): Promise<readonly PoolWorkerWord[]> {
    const texts = await this.#commands.hgetall(this.#key);
    const words = Object.values(texts).map((text): DatedWord => JSON.parse(text));
    const gone = words.filter(({ at }) => now - at > silentMilliseconds).map(({ id }) => id);
    if (gone.length > 0) await this.#commands.hdel(this.#key, ...gone);
    return words.filter(({ id }) => !gone.includes(id));
  }
}
