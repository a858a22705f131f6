import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "../redis/connection.ts";
import { unbundle } from "./frame.ts";
import { names } from "./names.ts";
import { PayloadStore } from "./payload-store.ts";
import type { RedisConnections } from "../redis/connections.ts";
import { type ClaimedReply, decodeReply, type Reply } from "./reply-frame.ts";

/** Bundles read at once: enough that reading keeps up with any number of pool workers. */
const bundlesAtOnce = 256;
const blockSeconds = 5;
const retryMilliseconds = 100;

/** Reads the replies that pool workers push onto the list of one gateway, until it is closed. */
export class ReplyReader {
  readonly #key: string;
  readonly #blocking: Redis;
  readonly #payloads: PayloadStore;
  readonly #listener: (reply: Reply) => void;
  readonly #done: Promise<void>;
  #closed = false;

  /** @param redis its blocking connection is used by nobody else */
  constructor(
    gateway: string,
    { blocking, commands }: Pick<RedisConnections, "blocking" | "commands">,
    listener: (reply: Reply) => void,
  ) {
    this.#key = names.replies(gateway);
    this.#blocking = blocking;
    this.#payloads = new PayloadStore(commands);
    this.#listener = listener;
    this.#done = this.#read();
  }

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
        for (const bytes of await this.#next()) await this.#hand(bytes);
      } catch {
        // The connection comes back by itself, and what was pushed meanwhile waits in the list.
        if (!this.#closed) await sleep(retryMilliseconds);
      }
    }
  }

  /** Takes many at once when many are there; sleeps in Redis when there is none. */
  async #next(): Promise<readonly Buffer[]> {
    const waiting = await this.#blocking.lpopBuffer(this.#key, bundlesAtOnce);
    if (waiting) return waiting;
    const first = await this.#blocking.blpopBuffer(this.#key, blockSeconds);
    return first ? [first[1]] : [];
  }

  async #hand(bytes: Buffer): Promise<void> {
    for (const frame of unbundle(bytes)) {
      const reply = decodeReply(frame);
      if ("claim" in reply) await this.#claim(reply);
      else this.#listener(reply);
    }
  }

  /** Fetches a large reply; those behind it wait, because they may be for the same request. */
  async #claim({ claim }: ClaimedReply): Promise<void> {
    const frame = await this.#payloads.get(claim);
    const reply = frame && decodeReply(frame);
    if (reply && !("claim" in reply)) this.#listener(reply);
    await this.#payloads.remove(claim);
  }
}
