import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "../redis/connection.ts";
import { inOneWrite } from "../redis/one-write.ts";
import { names } from "./names.ts";
import { claimBytes, PayloadStore } from "./payload-store.ts";
import {
  type ClaimedReply,
  encodeReplies,
  encodeReply,
  type Reply,
  replyBytes,
} from "./reply-frame.ts";

/** Nobody has read for so long: the gateway is gone, and with it those who waited. */
const unreadMilliseconds = 60_000;
/** A pool worker that cannot reach Redis for so long has lost its jobs to others, which answer in its place. */
const giveUpMilliseconds = 30_000;
const retryMilliseconds = 50;

/** What goes to one gateway together. */
interface Gathering {
  readonly replies: (Reply | ClaimedReply)[];
  /** Large replies that are on their way into keys of their own. */
  readonly claimed: Promise<void>[];
  readonly written: Promise<void>;
  /** Sends it with what becomes ready in this turn of the event loop; once. */
  flush(): void;
}

export interface ReplyWriterOptions {
  /** The connection on which jobs are ended: what is sent there later happens later. */
  readonly jobs: Redis;
  /** Writes what has to be in Redis before anyone reads a reply: what was counted. */
  readonly before: () => Promise<void>;
  /** How many requests this process has in hand, of all gateways. */
  readonly inHand: () => number;
}

/**
 * How long replies gather while more are to come: a model without batches answers one request after the other, and a write
 * costs more than an answer.
 */
const gatherMilliseconds = 1;

/** Writes replies to the lists of gateways, those that become ready at about the same time in one piece. */
export class ReplyWriter {
  readonly #jobs: Redis;
  readonly #payloads: PayloadStore;
  readonly #before: () => Promise<void>;
  readonly #inHand: () => number;
  readonly #open = new Map<string, Gathering>();
  /** The last write to a gateway that waits for a large reply: later ones must not overtake it. */
  readonly #slow = new Map<string, Promise<void>>();
  readonly #pushed = new Set<Promise<void>>();

  constructor({ jobs, before, inHand }: ReplyWriterOptions) {
    this.#jobs = jobs;
    this.#payloads = new PayloadStore(jobs);
    this.#before = before;
    this.#inHand = inHand;
  }

  /** Resolves when the reply is on its way ahead of all that is sent after that, or nobody can wait for it. Never rejects. */
  write(gateway: string, reply: Reply): Promise<void> {
    const open = this.#open.get(gateway) ?? this.#gather(gateway);
    if (replyBytes(reply) > claimBytes) {
      const claim = names.replyPayload(gateway, randomUUID());
      const payload = encodeReply(reply);
      open.claimed.push(persist(() => this.#payloads.put(claim, payload, unreadMilliseconds)));
      open.replies.push({ claim });
    } else {
      open.replies.push(reply);
    }
    if (open.replies.length >= this.#inHand()) open.flush();
    return open.written;
  }

  #gather(gateway: string): Gathering {
    const { promise: written, resolve } = Promise.withResolvers<void>();
    let flushing = false;
    const flush = (): void => {
      if (flushing) return;
      flushing = true;
      clearTimeout(timer);
      setImmediate(() => {
        this.#open.delete(gateway);
        resolve(this.#send(gateway, gathering));
      });
    };
    const timer = setTimeout(flush, gatherMilliseconds);
    const gathering: Gathering = { replies: [], claimed: [], written, flush };
    this.#open.set(gateway, gathering);
    return gathering;
  }

  #send(gateway: string, { replies, claimed }: Gathering): Promise<void> {
    const slow = this.#slow.get(gateway);
    if (!slow && claimed.length === 0) return this.#push(gateway, replies);
    const sent = Promise.all([slow, ...claimed]).then(() => this.#push(gateway, replies));
    const last = sent.finally(() => {
      if (this.#slow.get(gateway) === last) this.#slow.delete(gateway);
    });
    this.#slow.set(gateway, last);
    return sent;
  }

  /** Resolves when all that is on its way is in Redis. */
  async settled(): Promise<void> {
    await Promise.all(this.#pushed);
  }

  async #push(gateway: string, replies: readonly (Reply | ClaimedReply)[]): Promise<void> {
    const key = names.replies(gateway);
    const values = encodeReplies(replies);
    inOneWrite(this.#jobs);
    const before = this.#before();
    // One server takes commands in the order in which they are sent; of two, either may be the first.
    if (this.#jobs.isCluster) await before;
    const pushed = persist(() =>
      Promise.all([this.#jobs.rpush(key, ...values), this.#jobs.pexpire(key, unreadMilliseconds)]),
    ).finally(() => this.#pushed.delete(pushed));
    this.#pushed.add(pushed);
    if (this.#jobs.isCluster) await pushed;
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
