import { setTimeout as sleep } from "node:timers/promises";
import type { Queue } from "bullmq";
import type { FairShares } from "./fair-shares.ts";
import { isJobOf } from "./job-id.ts";
import { setPriorities } from "./set-priorities.ts";

/** The data of a job that runs a durable request. */
export interface DurableJobData {
  /** Its id, which is the job's, too. */
  readonly durable: string;
  readonly model: string;
  /** When it has its turn: see `FairShares`. */
  readonly finish: number;
}

/** What a durable request asks for. */
export interface DurableWork {
  readonly model: string;
  readonly tenant: string;
  readonly items: number;
}

/** How the jobs of durable requests are queued. */
export interface JobQueueOptions {
  readonly pool: string;
  readonly shares: FairShares;
  readonly queue: Queue<DurableJobData>;
  readonly failedMilliseconds: number;
}

/**
 * The second attempt comes about so much after the first, each later one after twice the time of the one before. Which
 * one is the last, the pool worker decides: one that cannot reach Redis is none.
 */
const retries = {
  attempts: 1000,
  backoff: { type: "exponential", delay: 1000, jitter: 0.5 },
} as const;
const lookAgainMilliseconds = 50;
const patienceMilliseconds = 2000;

/** BullMQ's side of durable requests: a job there has the id of the one it runs. */
export class JobQueue {
  readonly #options: JobQueueOptions;

  constructor(options: JobQueueOptions) {
    this.#options = options;
    // What cannot be done now is done when it happens again: until then they wait for longer.
    options.shares.onRebase(() => void this.#setPriorities().catch(() => {}));
  }

  /** Does nothing for one that is queued already. */
  async add(id: string, { model, tenant, items }: DurableWork): Promise<void> {
    const { queue, shares, failedMilliseconds } = this.#options;
    const finish = shares.send(tenant, items);
    await queue.add(
      "durable",
      { durable: id, model, finish },
      {
        jobId: id,
        priority: shares.priority(finish),
        ...retries,
        removeOnComplete: true,
        removeOnFail: { age: failedMilliseconds / 1000 },
        // Whoever looks into the queue need not see our stacks.
        stackTraceLimit: 0,
      },
    );
  }

  /** The same for one whose last run may not be out of the queue yet. */
  async addAgain(id: string, work: DurableWork): Promise<void> {
    const { queue } = this.#options;
    const giveUpAt = performance.now() + patienceMilliseconds;
    for (;;) {
      const state = await queue.getJobState(id);
      if (state === "failed" || state === "completed") await queue.remove(id);
      if (state !== "active" || performance.now() > giveUpAt) break;
      await sleep(lookAgainMilliseconds);
    }
    await this.add(id, work);
  }

  /** For a job that has not ended: brings it back into the queue if it is not there. */
  async restore(id: string, work: DurableWork): Promise<void> {
    const state = await this.#options.queue.getJobState(id);
    if (state === "failed" || state === "completed") await this.#options.queue.remove(id);
    if (["failed", "completed", "unknown"].includes(state)) await this.add(id, work);
  }

  /** Takes it out, unless a pool worker has it. */
  async remove(id: string): Promise<void> {
    await this.#options.queue.remove(id).catch(() => {});
  }
  /** Those of jobs that wait have become others. Their gateways may be gone, so that each gateway sees to all of them. */
  async #setPriorities(): Promise<void> {
    const { queue, pool, shares } = this.#options;
    const waiting = await queue.getRanges(["prioritized", "delayed"], 0, -1);
    for (const id of waiting.filter((one) => isJobOf(pool, one))) {
      const job = await queue.getJob(id);
      const priority = job && shares.priority(job.data.finish);
      if (priority !== undefined && priority !== job?.priority)
        await setPriorities(queue, [[id, priority]]);
    }
  }
}
