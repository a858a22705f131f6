import { type Job, type Processor, Worker, type WorkerOptions } from "bullmq";

/** A job that takes longer does not keep others waiting. */
const quickMilliseconds = 2;
const retryMilliseconds = 200;

/**
 * A BullMQ Worker that asks Redis for jobs as seldom as it can. BullMQ's own loop looks for another job as soon as it has
 * one, and then again; this one counts on the end of a quick job, which brings the next one along, and looks for jobs
 * beside those that it has only when all of those take long.
 */
export class JobTaker<Data> extends Worker<Data> {
  readonly #lanes = new Set<Promise<void>>();
  #slow = 0;
  #tokens = 0;
  #wake = (): void => {};

  constructor(queue: string, process: Processor<Data>, options: WorkerOptions) {
    super(queue, process, { ...options, autorun: false });
    this.run().catch((error: unknown) => this.#report(error));
  }

  /** Takes jobs until it is closed. */
  override async run(): Promise<void> {
    await this.startStalledCheckTimer();
    if (this.closing) return;
    this.lockManager.start();
    this.mainLoopRunning = this.#take();
    await this.mainLoopRunning;
  }

  async #take(): Promise<void> {
    while (!this.closing) {
      const job = await this.#next();
      if (job) this.#begin(job);
      while (!this.#isFree) await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    await Promise.all(this.#lanes);
  }

  async #next(): Promise<Job<Data> | undefined> {
    try {
      return await this.getNextJob(`${this.id}:${this.#tokens++}`);
    } catch (error) {
      if (!this.closing) {
        this.#report(error);
        await this.delay(retryMilliseconds);
      }
      return undefined;
    }
  }

  /** Nothing in hand keeps it from looking for more. */
  get #isFree(): boolean {
    return this.#lanes.size === this.#slow && this.#slow < this.concurrency;
  }

  #begin(job: Job<Data>): void {
    const lane = this.#run(job)
      .catch((error: unknown) => this.#report(error))
      .finally(() => {
        this.#lanes.delete(lane);
        this.#wake();
      });
    this.#lanes.add(lane);
  }

  /** Runs a job, and those that come along at the end of each. */
  async #run(first: Job<Data>): Promise<void> {
    const token = first.token ?? "";
    for (let job: Job<Data> | void = first; job;) {
      let isSlow = false;
      const timer = setTimeout(() => {
        isSlow = true;
        this.#slow++;
        this.#wake();
      }, quickMilliseconds);
      try {
        job = await this.processJob(job, token, () => this.#lanes.size <= this.concurrency);
      } finally {
        clearTimeout(timer);
        if (isSlow) this.#slow--;
      }
    }
  }

  #report(error: unknown): void {
    this.emit("error", error instanceof Error ? error : new Error(String(error)));
  }
}
