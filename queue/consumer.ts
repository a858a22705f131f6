import type { Job } from "bullmq";
import { InferenceError } from "../protocol/error.ts";
import type { Redis } from "../redis/connection.ts";
import type { Logger } from "../telemetry/logger.ts";
import { EnvelopeJobs, type EnvelopeJobsOptions } from "./envelope-jobs.ts";
import { EnvelopeRuns, type EnvelopeRunsOptions } from "./envelope-runs.ts";
import type { FairShares } from "./fair-shares.ts";
import { JobAttempt, type JobAttemptOptions } from "./job-attempt.ts";
import type { DurableJobData } from "./job-queue.ts";
import { type InferJobData, type OpenJobData, stallsBeforeApart, stallTimes } from "./jobs.ts";
import { JobTaker } from "./job-taker.ts";
import { killed } from "./killed.ts";
import { names, queueName } from "./names.ts";
import { type Opened, publishOpened } from "./openings.ts";
import { SequenceConsumer } from "./sequence-consumer.ts";
import { type TakenJob, TakenRequests } from "./taken-requests.ts";
import { markOf } from "./tenant-mark.ts";

export interface ConsumerOptions extends EnvelopeJobsOptions, Omit<EnvelopeRunsOptions, "guarded"> {
  /** Of this pool worker. */
  readonly id: string;
  readonly pool: string;
  readonly commands: Redis;
  /** A connection of its own, with the role `blocking`. */
  readonly blocking: Redis;
  readonly shares: FairShares;
  readonly durable: JobAttemptOptions;
  /** Jobs that this pool worker works on at a time. */
  readonly concurrency: number;
  readonly log: Logger;
}

/** Requests that may be taken ahead for each job that may be: several batches, if not all jobs are full. */
const requestsPerJob = 32;

/**
 * Takes the jobs of one pool's queue and has their requests run in this process. A job is over when its replies are in
 * Redis: if this process dies before, another takes the job over.
 */
export class Consumer {
  readonly #options: ConsumerOptions;
  readonly #taker: JobTaker<ConsumedJob["data"]>;
  readonly #taken: TakenRequests;
  readonly #runs: EnvelopeRuns;
  readonly #envelopes: EnvelopeJobs;
  readonly #sequences: SequenceConsumer;

  constructor(options: ConsumerOptions) {
    this.#options = options;
    const guarded: EnvelopeRunsOptions["guarded"] = (version) => this.#sequences.guarded(version);
    this.#runs = new EnvelopeRuns({ ...options, guarded });
    this.#envelopes = new EnvelopeJobs(options, this.#runs);
    this.#sequences = new SequenceConsumer(options, (data) => this.#envelopes.runFromLine(data));
    const taken = new TakenRequests(options.concurrency * requestsPerJob, () => this.#taker.look());
    const settings = {
      connection: options.blocking,
      prefix: names.queuePrefix(options.pool),
      concurrency: options.concurrency,
      // Which stalls are too many is decided here, request by request.
      maxStalledCount: 1000,
      ...stallTimes,
    };
    this.#taken = taken;
    this.#taker = new JobTaker(queueName, (job) => this.#work(job), settings, {
      get hasRoom() {
        return taken.hasRoom;
      },
      hasRoomForNext: () => this.#hasRoomForNext(),
    });
    this.#taker.on("stalled", () => options.counters.add("queue_stalled_total"));
    this.#taker.on("error", (err) => options.log.verbose(1, "queue", { err }));
  }

  /** Requests in hand. */
  get inflight(): number {
    return this.#runs.inflight;
  }

  /** Sequences that only this pool worker can go on with. */
  get openSequences(): number {
    return this.#sequences.open;
  }

  /**
   * Takes no new job; resolves when those in hand are over.
   *
   * @param drainMilliseconds how long it goes on with open sequences at most
   */
  async close(drainMilliseconds: number): Promise<void> {
    await Promise.all([this.#taker.close(), this.#sequences.close(drainMilliseconds)]);
    this.#runs.close();
    await this.#options.replies.settled();
  }

  /** The job that comes first is of a tenant that has less here than others. */
  async #hasRoomForNext(): Promise<boolean> {
    const [next] = await this.#options.queue.getRanges(["prioritized"], 0, 0, true).catch(() => []);
    return next !== undefined && this.#taken.hasRoomFor(markOf(next));
  }

  async #work(job: ConsumedJob): Promise<void> {
    const { id = "", data, stalledCounter } = job;
    if ("finish" in data) this.#options.shares.take(data.finish);
    const taken = this.#taken.take(markOf(id), "requests" in data ? data.requests : 1);
    try {
      if (isDurable(job)) await this.#durable(job, taken);
      else if (isEnvelope(job)) await this.#envelopes.runJob(job, taken);
      else if ("version" in data) await this.#open(data.version, stalledCounter);
    } finally {
      taken.over();
    }
  }

  /** What comes of a durable request goes to its own entry in Redis, whoever asked for it. */
  async #durable(job: Job<DurableJobData>, taken: TakenJob): Promise<void> {
    const { durable: id, model } = job.data;
    const attempt = new JobAttempt(this.#options.durable, job);
    const source = { envelope: id, model, answer: attempt.answer.bind(attempt), taken };
    // A job can be cancelled from the moment it begins.
    await this.#runs.begin(source, async (run) => {
      const envelope = await attempt.begin();
      if (!envelope) return;
      const stalls = job.stalledCounter;
      const data = { version: envelope.version, model };
      const starting = await this.#runs.version(data, stalls);
      if (!(starting instanceof InferenceError)) await attempt.running();
      this.#runs.count(envelope.requests.size, stalls);
      // Again, because it may have made room for others meanwhile.
      const version = await this.#runs.version(data, stalls);
      await this.#runs.answer(run, envelope, version);
      if (!(version instanceof InferenceError)) this.#options.counted(data.version, version);
      await attempt.end();
    });
  }

  async #open(version: string, stalls: number): Promise<void> {
    await publishOpened(this.#options, version, await this.#opened(version, stalls));
  }

  async #opened(key: string, stalls: number): Promise<Opened> {
    try {
      if (stalls >= stallsBeforeApart) throw killed("");
      const { model } = await this.#options.versions(key);
      const { config, splitOversizedBatches } = model;
      return {
        model: { config, ...(splitOversizedBatches !== undefined && { splitOversizedBatches }) },
      };
    } catch (cause) {
      const { code, message } = InferenceError.from(cause);
      return { error: [code, message] };
    }
  }
}

type ConsumedJob = Job<InferJobData | DurableJobData | OpenJobData>;

function isDurable(job: ConsumedJob): job is Job<DurableJobData> {
  return "durable" in job.data;
}

function isEnvelope(job: ConsumedJob): job is Job<InferJobData> {
  return "envelope" in job.data;
}
