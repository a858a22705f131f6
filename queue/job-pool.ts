import type { Redis } from "../redis/connection.ts";
import { isJobOf } from "./job-id.ts";
import type { ObjectStore } from "./job-objects.ts";
import { JobQueue, type JobQueueOptions } from "./job-queue.ts";
import { JobStore } from "./job-store.ts";
import type { PoolChannel } from "./pool-channel.ts";
import type { PoolLink } from "./pool-link.ts";

/** A gateway's way to the durable requests of one pool. */
export interface JobPool {
  readonly pool: string;
  readonly store: JobStore;
  readonly queue: JobQueue;
  readonly channel: PoolChannel;
}

export function jobPool(
  { pool, queue, channel }: Pick<PoolLink, "pool" | "queue" | "channel">,
  commands: Redis,
  objects: ObjectStore,
  limits: Omit<JobQueueOptions, "queue">,
): JobPool {
  const store = new JobStore(pool, commands, objects);
  return { pool, store, queue: new JobQueue({ ...limits, queue }), channel };
}

/** The pool that a job is in, as its id says; undefined for one that nobody here can have made. */
export function poolOfJob(pools: readonly JobPool[], id: string): JobPool | undefined {
  return pools.find(({ pool }) => isJobOf(pool, id));
}
