import type { Redis } from "../redis/connection.ts";
import { isJobOf } from "./job-id.ts";
import type { ObjectStore } from "./job-objects.ts";
import { JobQueue, type JobQueueOptions } from "./job-queue.ts";
import { JobStore } from "./job-store.ts";
import type { PoolChannel } from "./pool-channel.ts";
import type { PoolLink } from "./pool-link.ts";
import { WebhookStore } from "./webhook-store.ts";

/** A gateway's way to the durable requests of one pool. */
export interface JobPool {
  readonly pool: string;
  readonly store: JobStore;
  readonly queue: JobQueue;
  readonly channel: PoolChannel;
  readonly webhooks: WebhookStore;
}

export function jobPool(
  { pool, queue, channel, shares }: Pick<PoolLink, "pool" | "queue" | "channel" | "shares">,
  commands: Redis,
  objects: ObjectStore,
  limits: Pick<JobQueueOptions, "failedMilliseconds">,
): JobPool {
  const store = new JobStore(pool, commands, objects);
  const webhooks = new WebhookStore(pool, commands);
  const { failedMilliseconds } = limits;
  const jobs = new JobQueue({ pool, queue, shares, failedMilliseconds });
  return { pool, store, queue: jobs, channel, webhooks };
}

/** The pool that a job is in, as its id says; undefined for one that nobody here can have made. */
export function poolOfJob(pools: readonly JobPool[], id: string): JobPool | undefined {
  return pools.find(({ pool }) => isJobOf(pool, id));
}
