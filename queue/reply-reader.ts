import type { Redis } from "../redis/connection.ts";
import { inOneWrite } from "../redis/one-write.ts";
import { names } from "./names.ts";
import { PayloadStore } from "./payload-store.ts";
import { ReadLoop } from "./read-loop.ts";
import type { RedisConnections } from "../redis/connections.ts";
import { type ClaimedReply, decodeReplies, decodeReply, type Reply } from "./reply-frame.ts";

/** Bundles read at once: enough that reading keeps up with any number of pool workers. */
const bundlesAtOnce = 256;
const blockSeconds = 5;

/** Reads the replies that pool workers push onto the list of one gateway, until it is closed. */
export class ReplyReader {
  readonly #key: string;
  readonly #blocking: Redis;
  readonly #payloads: PayloadStore;
  readonly #listener: (replies: readonly Reply[]) => void;
  readonly #loop: ReadLoop;

  /** @param redis its blocking connection is used by nobody else */
  constructor(
    gateway: string,
    { blocking, commands }: Pick<RedisConnections, "blocking" | "commands">,
    listener: (replies: readonly Reply[]) => void,
  ) {
    this.#key = names.replies(gateway);
    this.#blocking = blocking;
    this.#payloads = new PayloadStore(commands);
    this.#listener = listener;
    this.#loop = new ReadLoop(blocking, async () => {
      for (const bytes of await this.#next()) await this.#hand(bytes);
    });
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  /** Sleeps in Redis while there is none, and takes all that are there at once. */
  async #next(): Promise<readonly Buffer[]> {
    inOneWrite(this.#blocking);
    const [first, more] = await Promise.allSettled([
      this.#blocking.blpopBuffer(this.#key, blockSeconds),
      this.#blocking.lpopBuffer(this.#key, bundlesAtOnce),
    ]);
    // What one of them took must not be lost because the other one failed.
    if (first.status === "rejected" && more.status === "rejected") throw first.reason;
    return [
      ...(first.status === "fulfilled" && first.value ? [first.value[1]] : []),
      ...(more.status === "fulfilled" ? (more.value ?? []) : []),
    ];
  }

  async #hand(bytes: Buffer): Promise<void> {
    const replies: Reply[] = [];
    for (const reply of decodeReplies(bytes)) {
      if ("claim" in reply) {
        this.#listener(replies.splice(0));
        // Those behind it wait for it, because they may be for the same request.
        const claimed = await this.#claimed(reply);
        if (claimed) this.#listener([claimed]);
      } else {
        replies.push(reply);
      }
    }
    this.#listener(replies);
  }

  /** Fetches a large reply. */
  async #claimed({ claim }: ClaimedReply): Promise<Reply | undefined> {
    const payload = await this.#payloads.get(claim);
    await this.#payloads.remove(claim);
    return payload && decodeReply(payload);
  }
}
