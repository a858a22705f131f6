import { hasEnded } from "../protocol/job.ts";
import type { JobPool } from "./job-pool.ts";

const lookMilliseconds = 2000;
/** Longer than a gateway takes to queue what it has written. */
const settledMilliseconds = 10_000;

/**
 * Looks through the unfinished jobs again and again for those that are in no queue, because a process died or Redis went
 * away between two writes: they are queued, or forgotten where nothing is left of them.
 */
export class JobRescue {
  readonly #pools: readonly JobPool[];
  readonly #cursors = new Map<JobPool, string>();
  readonly #timer: NodeJS.Timeout;
  #looking = false;

  constructor(pools: readonly JobPool[]) {
    this.#pools = pools;
    this.#timer = setInterval(() => void this.#lookAround(), lookMilliseconds);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #lookAround(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    // While Redis is away nothing can be seen: the next look comes.
    await Promise.allSettled(this.#pools.map((pool) => this.#look(pool)));
    this.#looking = false;
  }

  async #look(pool: JobPool): Promise<void> {
    const [next, ids] = await pool.store.unfinished(this.#cursors.get(pool) ?? "0");
    this.#cursors.set(pool, next);
    for (const id of ids) await rescue(pool, id, Date.now());
  }
}

async function rescue({ store, queue }: JobPool, id: string, now: number): Promise<void> {
  const record = await store.read(id);
  if (!record) await store.forget(id);
  else if (!hasEnded(record.job) && now - record.job.createdAt > settledMilliseconds) {
    const { job, tenant } = record;
    await queue.restore(id, { model: job.modelName, tenant, items: 1 });
  }
}
