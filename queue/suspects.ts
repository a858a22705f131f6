import type { Job } from "bullmq";

/** What is kept with a job that runs alone; BullMQ's tools show it as its progress. */
interface AloneProgress {
  /** How often it ended its pool worker so. */
  readonly deaths: number;
  /** How often it had lost its pool worker when it was begun the last time. */
  readonly stalls: number;
}

/**
 * Runs one at a time what was in hand when pool workers died: many may have been, and only the one that kills is to be
 * given up.
 */
export class Suspects {
  #last: Promise<unknown> = Promise.resolve();

  /** @param run is told how often the job has ended its pool worker while no other suspect ran */
  runAlone(job: Job, run: (deaths: number) => Promise<void>): Promise<void> {
    const begun = this.#last.then(async () => run(await begin(job)));
    this.#last = begun.catch(() => {});
    return begun;
  }
}

async function begin(job: Job): Promise<number> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written here; a number where nothing was written
  const { deaths = 0, stalls = Infinity } = job.progress as Partial<AloneProgress>;
  const { stalledCounter } = job;
  const progress: AloneProgress = {
    // What is begun again because Redis was away has not died.
    deaths: stalledCounter > stalls ? deaths + 1 : deaths,
    stalls: stalledCounter,
  };
  await job.updateProgress(progress);
  return progress.deaths;
}
