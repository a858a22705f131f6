import { duplicate, type Redis } from "../redis/connection.ts";
import { execute } from "../redis/execute.ts";
import type { InferJobData } from "./jobs.ts";
import { names } from "./names.ts";
import { ReadLoop } from "./read-loop.ts";

/** Who has not read for so long is gone, and its sequences with it. */
const unreadMilliseconds = 60_000;
const atOnce = 64;
const blockSeconds = 5;

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
  readonly #loop: ReadLoop;

  constructor({ pool, id, blocking }: SequenceLineOptions, listener: (data: InferJobData) => void) {
    this.#key = names.sequenceLine(pool, id);
    this.#blocking = duplicate(blocking);
    this.#loop = new ReadLoop(this.#blocking, async () => {
      for (const text of await this.#next()) listener(JSON.parse(text));
    });
  }

  get closed(): boolean {
    return this.#loop.closed;
  }

  /** What it has not read by then is for nobody. */
  close(): Promise<void> {
    return this.#loop.close();
  }

  async #next(): Promise<readonly string[]> {
    const waiting = await this.#blocking.lpop(this.#key, atOnce);
    if (waiting) return waiting;
    const first = await this.#blocking.blpop(this.#key, blockSeconds);
    return first ? [first[1]] : [];
  }
}
