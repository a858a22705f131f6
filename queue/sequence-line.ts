import { setTimeout as sleep } from "node:timers/promises";
import { duplicate, type Redis } from "../redis/connection.ts";
import { execute } from "../redis/execute.ts";
import type { InferJobData } from "./jobs.ts";
import { names } from "./names.ts";

/** Who has not read for so long is gone, and its sequences with it. */
const unreadMilliseconds = 60_000;
const atOnce = 64;
const blockSeconds = 5;
const retryMilliseconds = 100;

/** Puts an envelope into the line of one pool worker: it is for sequences, which no other can go on with. */
export async function pushToLine(
  { pool, commands }: { readonly pool: string; readonly commands: Redis },
  poolWorker: string,
  data: InferJobData,
): Promise<void> {
  const key = names.sequenceLine(pool, poolWorker);
  const pipeline = commands.pipeline().rpush(key, JSON.stringify(data));
  await execute(pipeline.pexpire(key, unreadMilliseconds));
}

export interface SequenceLineOptions {
  readonly pool: string;
  /** Of the pool worker. */
  readonly id: string;
  /** With the role `blocking`; it is duplicated, because others block on it. */
  readonly blocking: Redis;
}

/** Reads the line of this pool worker until it is closed. What is lost with this process was of use to it alone. */
export class SequenceLine {
  readonly #key: string;
  readonly #blocking: Redis;
  readonly #listener: (data: InferJobData) => void;
  readonly #done: Promise<void>;
  #closed = false;

  constructor({ pool, id, blocking }: SequenceLineOptions, listener: (data: InferJobData) => void) {
    this.#key = names.sequenceLine(pool, id);
    this.#blocking = duplicate(blocking);
    this.#listener = listener;
    this.#done = this.#read();
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** What it has not read by then is for nobody. */
  async close(): Promise<void> {
    this.#closed = true;
    // While the server is away a command that waits for it would never end.
    const away = this.#blocking.status !== "ready";
    this.#blocking.disconnect();
    if (!away) await this.#done;
  }

  async #read(): Promise<void> {
    while (!this.#closed) {
      try {
        for (const text of await this.#next()) this.#listener(JSON.parse(text));
      } catch {
        if (!this.#closed) await sleep(retryMilliseconds);
      }
    }
  }

  async #next(): Promise<readonly string[]> {
    const waiting = await this.#blocking.lpop(this.#key, atOnce);
    if (waiting) return waiting;
    const first = await this.#blocking.blpop(this.#key, blockSeconds);
    return first ? [first[1]] : [];
  }
}
