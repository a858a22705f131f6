import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "../redis/connection.ts";

const retryMilliseconds = 100;

/** Reads again and again from a connection that may sleep in Redis, until it is closed. */
export class ReadLoop {
  readonly #blocking: Redis;
  readonly #done: Promise<void>;
  #closed = false;

  /**
   * @param blocking used by nobody else
   * @param read waits for what is there and hands it on
   */
  constructor(blocking: Redis, read: () => Promise<void>) {
    this.#blocking = blocking;
    this.#done = this.#run(read);
  }

  get closed(): boolean {
    return this.#closed;
  }

  async close(): Promise<void> {
    this.#closed = true;
    // While the server is away a command that waits for it would never end.
    const away = this.#blocking.status !== "ready";
    this.#blocking.disconnect();
    if (!away) await this.#done;
  }

  async #run(read: () => Promise<void>): Promise<void> {
    while (!this.#closed) {
      try {
        await read();
      } catch {
        // The connection comes back by itself, and what was pushed meanwhile waits in Redis.
        if (!this.#closed) await sleep(retryMilliseconds);
      }
    }
  }
}
