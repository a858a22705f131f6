import { hasEnded } from "../protocol/job.ts";
import type { JobPool } from "./job-pool.ts";
import { lookAround } from "./look-around.ts";

/** Longer than a gateway takes to queue what it has written. */
const settledMilliseconds = 10_000;

/**
 * Looks through the unfinished jobs again and again for those that are in no queue, because a process died or Redis went
 * away between two writes: they are queued, or forgotten where nothing is left of them. The function that is given back
 * ends it.
 */
export function rescueJobs(pools: readonly JobPool[]): () => void {
  const cursors = new Map<JobPool, string>();
  return lookAround(pools, async (pool) => {
    const [next, ids] = await pool.store.unfinished(cursors.get(pool) ?? "0");
    cursors.set(pool, next);
    for (const id of ids) await rescue(pool, id, Date.now());
  });
}

async function rescue({ store, queue }: JobPool, id: string, now: number): Promise<void> {
  const record = await store.read(id);
  if (!record) await store.forget(id);
  else if (!hasEnded(record.job) && now - record.job.createdAt > settledMilliseconds) {
    const { job, tenant } = record;
    await queue.restore(id, { model: job.modelName, tenant, items: 1 });
  }
}
