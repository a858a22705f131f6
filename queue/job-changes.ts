import type { Job, JobState } from "../protocol/job.ts";
import type { PoolChannel, StartProgress } from "./pool-channel.ts";

/** For those who missed the word, because Redis was away or a process died before it said it. */
const lookAgainMilliseconds = 1000;
/** A start that nobody has spoken of for so long has died with its pool worker. */
const silentMilliseconds = 30_000;
const mostStarts = 1000;

const startStates: Readonly<Record<StartProgress["phase"], JobState | undefined>> = {
  fetch: "fetching",
  load: "loading",
  warmup: "warming",
  ready: undefined,
};

interface DatedStart {
  readonly seen: Partial<Pick<Job, "state" | "percent">>;
  readonly at: number;
}

/** What a gateway hears of jobs: wakes those who wait for one, and knows how far the start of its version is. */
export class JobChanges {
  readonly #waiting = new Map<string, Set<() => void>>();
  /** By version, those last spoken of at the end. */
  readonly #starts = new Map<string, DatedStart>();

  /** Hears what is said in a pool. */
  listen(channel: PoolChannel): void {
    channel.on("job", ({ id }) => this.#wake(id));
    channel.on("progress", (progress) => {
      this.#keep(progress);
      for (const id of this.#waiting.keys()) this.#wake(id);
    });
  }

  /** Resolves when the job may have changed, or the signal says that nobody waits. */
  next(id: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = (): void => resolve();
    const timer = setTimeout(end, lookAgainMilliseconds);
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting.add(end));
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
    return promise.finally(() => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      waiting.delete(end);
      if (waiting.size === 0) this.#waiting.delete(id);
    });
  }

  /** The job as it is seen here: one that waits for its version is as far as that. */
  seen(job: Job, version: string, now: number): Job {
    const start = job.state === "starting" ? this.#starts.get(version) : undefined;
    return start && now - start.at < silentMilliseconds ? { ...job, ...start.seen } : job;
  }

  #keep({ version, phase, fetchedBytes, totalBytes }: StartProgress): void {
    this.#starts.delete(version);
    const state = startStates[phase];
    if (!state) return;
    const known = fetchedBytes !== undefined && totalBytes !== undefined && totalBytes > 0;
    const percent = known ? Math.floor((100 * fetchedBytes) / totalBytes) : undefined;
    const seen = { state, ...(percent !== undefined && { percent }) };
    this.#starts.set(version, { seen, at: Date.now() });
    const [oldest] = this.#starts.keys();
    if (oldest !== undefined && this.#starts.size > mostStarts) this.#starts.delete(oldest);
  }

  #wake(id: string): void {
    for (const end of this.#waiting.get(id) ?? []) end();
  }
}
