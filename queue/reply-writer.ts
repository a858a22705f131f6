import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "../redis/connection.ts";
import { execute } from "../redis/execute.ts";
import { bundle } from "./frame.ts";
import { names } from "./names.ts";
import { encodeReply, type Reply } from "./reply-frame.ts";

/** Nobody has read for so long: the gateway is gone, and with it those who waited. */
const unreadMilliseconds = 60_000;
/** A pool worker that cannot reach Redis for so long has lost its jobs to others, which answer in its place. */
const giveUpMilliseconds = 30_000;
const retryMilliseconds = 50;

interface Bundle {
  readonly frames: Buffer[];
  readonly written: Promise<void>;
}

/** Writes replies to the lists of gateways; all that become ready in one turn of the event loop go in one piece. */
export class ReplyWriter {
  readonly #commands: Redis;
  readonly #before: () => Promise<void>;
  readonly #open = new Map<string, Bundle>();

  /** @param before writes what has to be in Redis before anyone reads a reply: what was counted */
  constructor(commands: Redis, before: () => Promise<void>) {
    this.#commands = commands;
    this.#before = before;
  }

  /** Resolves when the reply is in Redis, or when nobody can wait for it any longer. Never rejects. */
  write(gateway: string, reply: Reply): Promise<void> {
    let open = this.#open.get(gateway);
    if (!open) {
      const frames: Buffer[] = [];
      const written = new Promise<void>((resolve) => {
        setImmediate(() => {
          this.#open.delete(gateway);
          resolve(this.#push(names.replies(gateway), bundle(frames)));
        });
      });
      this.#open.set(gateway, (open = { frames, written }));
    }
    open.frames.push(encodeReply(reply));
    return open.written;
  }

  async #push(key: string, bytes: Buffer): Promise<void> {
    const giveUpAt = performance.now() + giveUpMilliseconds;
    const before = this.#before();
    // One server takes commands in the order in which they are sent; of two, either may be the first.
    if (this.#commands.isCluster) await before;
    for (;;) {
      try {
        await execute(this.#commands.pipeline().rpush(key, bytes).pexpire(key, unreadMilliseconds));
        return;
      } catch {
        if (performance.now() > giveUpAt) return;
        await sleep(retryMilliseconds);
      }
    }
  }
}
