import { type Job, type Processor, Worker, type WorkerOptions } from "bullmq";

/** A job that takes longer does not keep others waiting. */
const quickMilliseconds = 2;
const retryMilliseconds = 200;
/**
 * Between two looks at what comes first while there is no room: a tenant with nothing here waits no longer than that. With
 * more time, another of its neighbour's executions would often begin first.
 */
const lookMilliseconds = 1;

/** How much a JobTaker may have in hand, beside what BullMQ counts. */
export interface JobRoom {
  /** For any job. */
  readonly hasRoom: boolean;
  /** Asked every so often when there is none, or no lane is free: there is for the job that comes first in the queue. */
  hasRoomForNext(): Promise<boolean>;
}

const endlessRoom: JobRoom = { hasRoom: true, hasRoomForNext: () => Promise.resolve(false) };

/**
 * A BullMQ Worker that asks Redis for jobs as seldom as it can. BullMQ's own loop looks for another job as soon as it has
 * one, and then again; this one counts on the end of a quick job, which brings the next one along, and looks for jobs
 * beside those that it has only when all of those take long.
 */
export class JobTaker<Data> extends Worker<Data> {
  readonly #room: JobRoom;
  readonly #lanes = new Set<Promise<void>>();
  #slow = 0;
  #tokens = 0;
  #lookedAt = 0;
  #wake = (): void => {};

  constructor(
    queue: string,
    process: Processor<Data>,
    options: WorkerOptions,
    room: JobRoom = endlessRoom,
  ) {
    super(queue, process, { ...options, autorun: false });
    this.#room = room;
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

  /** To be called when there is room again. */
  look(): void {
    this.#wake();
  }

  async #take(): Promise<void> {
    while (!this.closing) {
      const job = await this.#next();
      if (job) this.#begin(job);
      await this.#untilRoom();
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

  async #untilRoom(): Promise<void> {
    while (!this.closing) {
      // Before it looks: what happens meanwhile is not missed.
      const { promise: woken, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      if (await this.#mayTake()) return;
      const timer = setTimeout(resolve, lookMilliseconds);
      await woken;
      clearTimeout(timer);
    }
  }

  async #mayTake(): Promise<boolean> {
    const lanes = this.#lanes.size;
    // One of them will soon go on with another.
    if (lanes > this.#slow) return false;
    if (lanes < this.concurrency && this.#room.hasRoom) return true;
    const now = performance.now();
    if (lanes >= 2 * this.concurrency || now < this.#lookedAt + lookMilliseconds) return false;
    this.#lookedAt = now;
    return this.#room.hasRoomForNext();
  }

  /** The end of a job may bring another one along. */
  get #mayGoOn(): boolean {
    return this.#lanes.size <= this.concurrency && this.#room.hasRoom;
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
        job = await this.processJob(job, token, () => this.#mayGoOn);
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
