import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "../redis/connection.ts";
import { execute } from "../redis/execute.ts";
import { bundles } from "./frame.ts";
import { names } from "./names.ts";
import { claimBytes, PayloadStore } from "./payload-store.ts";
import { encodeClaim, encodeReply, type Reply } from "./reply-frame.ts";

/** Nobody has read for so long: the gateway is gone, and with it those who waited. */
const unreadMilliseconds = 60_000;
/** A pool worker that cannot reach Redis for so long has lost its jobs to others, which answer in its place. */
const giveUpMilliseconds = 30_000;
const retryMilliseconds = 50;

/** What goes to one gateway together. */
interface Gathering {
  readonly frames: Buffer[];
  /** Large replies that are on their way into keys of their own. */
  readonly claimed: Promise<void>[];
  readonly written: Promise<void>;
}

/** Writes replies to the lists of gateways; all that become ready in one turn of the event loop go in one piece. */
export class ReplyWriter {
  readonly #commands: Redis;
  readonly #payloads: PayloadStore;
  readonly #before: () => Promise<void>;
  readonly #open = new Map<string, Gathering>();
  /** The last write to a gateway that waits for a large reply: later ones must not overtake it. */
  readonly #slow = new Map<string, Promise<void>>();

  /** @param before writes what has to be in Redis before anyone reads a reply: what was counted */
  constructor(commands: Redis, before: () => Promise<void>) {
    this.#commands = commands;
    this.#payloads = new PayloadStore(commands);
    this.#before = before;
  }

  /** Resolves when the reply is in Redis, or when nobody can wait for it any longer. Never rejects. */
  write(gateway: string, reply: Reply): Promise<void> {
    const open = this.#open.get(gateway) ?? this.#gather(gateway);
    const frame = encodeReply(reply);
    if (frame.byteLength > claimBytes) {
      const key = names.replyPayload(gateway, randomUUID());
      open.claimed.push(persist(() => this.#payloads.put(key, frame, unreadMilliseconds)));
      open.frames.push(encodeClaim({ claim: key }));
    } else {
      open.frames.push(frame);
    }
    return open.written;
  }

  #gather(gateway: string): Gathering {
    const { promise: written, resolve } = Promise.withResolvers<void>();
    const gathering: Gathering = { frames: [], claimed: [], written };
    this.#open.set(gateway, gathering);
    setImmediate(() => {
      this.#open.delete(gateway);
      resolve(this.#send(gateway, gathering));
    });
    return gathering;
  }

  #send(gateway: string, { frames, claimed }: Gathering): Promise<void> {
    const slow = this.#slow.get(gateway);
    if (!slow && claimed.length === 0) return this.#push(gateway, frames);
    const sent = Promise.all([slow, ...claimed]).then(() => this.#push(gateway, frames));
    const last = sent.finally(() => {
      if (this.#slow.get(gateway) === last) this.#slow.delete(gateway);
    });
    this.#slow.set(gateway, last);
    return sent;
  }

  async #push(gateway: string, frames: readonly Buffer[]): Promise<void> {
    const key = names.replies(gateway);
    const values = bundles(frames);
    const before = this.#before();
    // One server takes commands in the order in which they are sent; of two, either may be the first.
    if (this.#commands.isCluster) await before;
    await persist(() =>
      execute(
        this.#commands
          .pipeline()
          .rpush(key, ...values)
          .pexpire(key, unreadMilliseconds),
      ),
    );
  }
}

/** Repeats what fails because Redis is away, for as long as it makes sense. */
async function persist(write: () => Promise<unknown>): Promise<void> {
  const giveUpAt = performance.now() + giveUpMilliseconds;
  for (;;) {
    try {
      await write();
      return;
    } catch {
      if (performance.now() > giveUpAt) return;
      await sleep(retryMilliseconds);
    }
  }
}
