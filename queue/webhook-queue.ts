import { setTimeout as sleep } from "node:timers/promises";
import { DelayedError, type Job, Queue, Worker } from "bullmq";
import { type Delivery, jobDelivery, type WebhookSender } from "../protocol/webhook.ts";
import type { Redis } from "../redis/connection.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { WebhookObservation } from "../telemetry/webhook-metrics.ts";
import { readJob } from "./job-store.ts";
import { lookAround } from "./look-around.ts";
import { names } from "./names.ts";
import { persist } from "./persist.ts";
import type { PoolChannel } from "./pool-channel.ts";
import type { PoolLink } from "./pool-link.ts";
import { jobOfDelivery, type ListedWebhook, listedWebhook, WebhookStore } from "./webhook-store.ts";

export interface WebhookQueueOptions {
  readonly commands: Redis;
  /** A connection of its own, with the role `blocking`. */
  readonly blocking: Redis;
  readonly links: readonly Pick<PoolLink, "pool" | "channel">[];
  readonly sender: WebhookSender;
  readonly log: Logger;
}

/** As BullMQ's tools show it, below its prefix. */
const queueName = "webhooks";
/** Of one gateway. */
const mostAtOnce = 64;
/** When a gateway that died amid an attempt is noticed: its lock runs out, and the next look finds the webhook without one. */
const stallTimes = { lockDuration: 10_000, stalledInterval: 5000 } as const;
/** How often it is tried, the sender says: it fails for good only when Redis cannot be reached amid an attempt. */
const jobOptions = {
  attempts: 1000,
  backoff: { type: "custom" },
  removeOnComplete: true,
  removeOnFail: true,
  stackTraceLimit: 0,
} as const;
/** How long a webhook waits, more or less, whose target or tenant has as many as it may; then twice as long, and so on. */
const busyMilliseconds = 1000;
const longestBusyMilliseconds = 60_000;
const closeMilliseconds = 3000;

interface QueuedDelivery {
  readonly pool: string;
  readonly delivery: Delivery;
}

interface PoolWebhooks {
  readonly pool: string;
  readonly channel: PoolChannel;
  readonly store: WebhookStore;
  cursor: string;
}

/**
 * A gateway's part in telling receivers of jobs that have ended: takes up what ends, and delivers what any gateway took up,
 * each webhook by one gateway at a time. What was taken up by nobody, or was lost, is found by looking again and again.
 */
export class WebhookQueue {
  readonly #options: WebhookQueueOptions;
  readonly #pools: readonly PoolWebhooks[];
  readonly #queue: Queue<QueuedDelivery>;
  readonly #worker: Worker<QueuedDelivery>;
  readonly #stopHearing: readonly (() => void)[];
  readonly #stopLooking: () => void;

  constructor(options: WebhookQueueOptions) {
    const { commands, blocking, links, log } = options;
    this.#options = options;
    this.#pools = links.map(({ pool, channel }) => ({
      pool,
      channel,
      store: new WebhookStore(pool, commands),
      cursor: "0",
    }));
    const prefix = names.webhookQueuePrefix;
    this.#queue = new Queue(queueName, { connection: commands, prefix, skipWaitingForReady: true });
    // Each command that fails rejects on its own.
    this.#queue.on("error", () => {});
    this.#worker = new Worker(queueName, (job, token) => this.#work(job, token), {
      connection: blocking,
      prefix,
      concurrency: mostAtOnce,
      maxStalledCount: 1000,
      settings: { backoffStrategy: (_, __, error) => backoffOf(error) },
      ...stallTimes,
    });
    this.#worker.on("error", (err) => log.verbose(1, "webhooks", { err }));
    this.#stopHearing = this.#pools.map((pool) =>
      // What fails because Redis is away is found by the next look.
      pool.channel.on(
        "webhook",
        ({ delivery }) => void this.#take(pool, listedWebhook(delivery)).catch(() => {}),
      ),
    );
    this.#stopLooking = lookAround(this.#pools, (pool) => this.#look(pool));
  }

  /** For a scrape; the same at every gateway. */
  async observe(): Promise<WebhookObservation> {
    const [attempts, ...observed] = await Promise.all([
      this.#options.commands.hgetall(names.webhookAttempts),
      ...this.#pools.map(({ store }) => store.observe()),
    ]);
    const counts = Object.entries(attempts).map(([outcome, count]) => [outcome, Number(count)]);
    return {
      undelivered: observed.reduce((sum, { count }) => sum + count, 0),
      since: Math.min(...observed.map(({ since = Infinity }) => since)),
      attempts: Object.fromEntries(counts),
    };
  }

  /** Begins no attempt any more; what has not ended soon is for other gateways. */
  async close(): Promise<void> {
    this.#stopLooking();
    for (const stop of this.#stopHearing) stop();
    const patience = sleep(closeMilliseconds, undefined, { ref: false });
    await Promise.race([this.#worker.close(), patience]);
    await this.#queue.close();
  }

  async #look(pool: PoolWebhooks): Promise<void> {
    const [next, webhooks] = await pool.store.undelivered(pool.cursor);
    pool.cursor = next;
    for (const webhook of webhooks) {
      if ((await this.#queue.getJobState(webhook.id)) === "unknown")
        await this.#take(pool, webhook);
    }
  }

  /** Puts it into the queue, unless it is there; forgets one of which nothing is left to tell. */
  async #take({ pool, store }: PoolWebhooks, listed: ListedWebhook): Promise<void> {
    const { id, tenant } = listed;
    const record = await readJob(this.#options.commands, pool, jobOfDelivery(id));
    const { job, webhook: url, traceparent } = record ?? {};
    const delivery = job && url ? jobDelivery(job, { url, tenant, traceparent }) : undefined;
    // A job that is run again meanwhile will tell of its next end.
    if (delivery?.id !== id) await store.forget(listed);
    else await this.#queue.add("webhook", { pool, delivery }, { jobId: id, ...jobOptions });
  }

  async #work(job: Job<QueuedDelivery>, token: string | undefined): Promise<void> {
    const { data, attemptsMade, attemptsStarted } = job;
    const { commands, sender } = this.#options;
    const store = new WebhookStore(data.pool, commands);
    // It may have been put into the queue again by who did not see that it is over.
    if (!(await store.isUndelivered(data.delivery))) return;
    const attempt = await sender.attempt(data.delivery, attemptsMade + 1);
    if (!attempt) {
      await job.moveToDelayed(Date.now() + busyDelay(attemptsStarted - attemptsMade), token);
      throw new DelayedError();
    }
    await persist(() => store.record(attempt, data.delivery.tenant));
    commands.hincrby(names.webhookAttempts, attempt.outcome, 1).catch(() => {});
    if (attempt.nextAt !== undefined) throw new RetryError(attempt.nextAt);
  }
}

/** Says when to try again. */
class RetryError extends Error {
  readonly at: number;

  constructor(at: number) {
    super("not delivered");
    this.at = at;
  }
}

function backoffOf(error: Error | undefined): number {
  return error instanceof RetryError ? Math.max(1, error.at - Date.now()) : busyMilliseconds;
}

/** @param times that it was begun since its last attempt */
function busyDelay(times: number): number {
  const longest = Math.min(longestBusyMilliseconds, busyMilliseconds * 2 ** (times - 1));
  return longest * (0.5 + Math.random() / 2);
}
