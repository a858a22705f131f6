import type { Queue } from "bullmq";
import type { QueueObservation } from "../telemetry/queue-metrics.ts";
import type { Demand } from "./demand.ts";
import type { PoolCounters } from "./pool-counters.ts";
import type { Presence } from "./presence.ts";

export interface ObservedQueue {
  readonly pool: string;
  readonly queue: Queue;
  readonly demand: Demand;
  readonly presence: Presence;
  readonly counters: PoolCounters;
}

/** BullMQ keeps jobs with a priority apart from those without, though both wait for the same. */
const waitingStates = ["waiting", "prioritized"] as const;
/** Tenants take turns, so that the oldest job need not be the first; but each one's first is its oldest. */
const looked = 16;

/**
 * Looks at a pool for a scrape: its queue as BullMQ has it, its workers as they announce themselves, and what they have
 * counted.
 *
 * @param now milliseconds since the epoch
 */
export async function observeQueue(
  { pool, queue, demand, presence, counters }: ObservedQueue,
  now: number,
): Promise<QueueObservation> {
  const [jobs, next, { requests }, poolWorkers, counts] = await Promise.all([
    queue.getJobCounts(...waitingStates, "active"),
    queue.getJobs([...waitingStates], 0, looked - 1, true),
    demand.total(now),
    presence.present(now),
    counters.read(),
  ]);
  // A job may be gone between its listing and its reading.
  const since = Math.min(now, ...next.flatMap((job) => job?.timestamp ?? []));
  return {
    pool,
    waitingJobs: waitingStates.reduce((sum, state) => sum + (jobs[state] ?? 0), 0),
    activeJobs: jobs["active"] ?? 0,
    oldestAgeSeconds: (now - since) / 1000,
    demand: requests,
    poolWorkers: poolWorkers.map(({ state }) => state),
    residentVersions: poolWorkers.reduce((sum, { resident }) => sum + resident.length, 0),
    counts,
  };
}
