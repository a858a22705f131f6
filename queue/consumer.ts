import type { Job, Queue } from "bullmq";
import { InferenceError } from "../protocol/error.ts";
import type { Redis } from "../redis/connection.ts";
import type { Clock } from "../serving/clock.ts";
import type { CountedVersion } from "../serving/running-version.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { ColdStarts } from "./cold-start.ts";
import { type Envelope, type Envelopes } from "./envelope.ts";
import { type Answer, type EnvelopeObserver, EnvelopeRun } from "./envelope-run.ts";
import { JobAttempt, type JobAttemptOptions } from "./job-attempt.ts";
import type { DurableJobData } from "./job-queue.ts";
import {
  type InferJobData,
  jobNames,
  jobOptions,
  jobPriorities,
  type OpenJobData,
  stallsBeforeApart,
  stallTimes,
} from "./jobs.ts";
import { JobTaker } from "./job-taker.ts";
import { killed } from "./killed.ts";
import type { LivingGateways } from "./living-gateways.ts";
import { names, queueName } from "./names.ts";
import { type Opened, publishOpened } from "./openings.ts";
import type { PoolChannel } from "./pool-channel.ts";
import type { PoolCounters } from "./pool-counters.ts";
import type { ReplyWriter } from "./reply-writer.ts";
import { SequenceConsumer } from "./sequence-consumer.ts";
import { Suspects } from "./suspects.ts";

export interface ConsumerOptions {
  /** Of this pool worker. */
  readonly id: string;
  readonly pool: string;
  readonly commands: Redis;
  /** A connection of its own, with the role `blocking`. */
  readonly blocking: Redis;
  readonly queue: Queue;
  readonly envelopes: Envelopes;
  readonly gateways: LivingGateways;
  readonly replies: ReplyWriter;
  readonly durable: JobAttemptOptions;
  readonly channel: PoolChannel;
  /** The version of a key, started if it has to be. */
  readonly versions: (key: string) => Promise<CountedVersion>;
  /** Told before a reply is written: its version has counted something. */
  readonly counted: (key: string, version: CountedVersion) => void;
  readonly counters: PoolCounters;
  readonly coldStarts: ColdStarts;
  /** Jobs that this pool worker works on at a time. */
  readonly concurrency: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Takes the jobs of one pool's queue and has their requests run in this process. A job is over when its replies are in
 * Redis: if this process dies before, another takes the job over.
 */
export class Consumer {
  readonly #options: ConsumerOptions;
  readonly #taker: JobTaker<ConsumedJob["data"]>;
  readonly #runs = new Set<EnvelopeRun>();
  readonly #suspects = new Suspects();
  readonly #sequences: SequenceConsumer;
  readonly #stopHearing: () => void;
  #inflight = 0;

  constructor(options: ConsumerOptions) {
    this.#options = options;
    this.#sequences = new SequenceConsumer(options, (data) => this.#runOrDrop(data));
    this.#stopHearing = options.channel.on("cancel", ({ envelope, index }) => {
      for (const run of this.#runs) if (run.envelope === envelope) run.cancel(index);
    });
    this.#taker = new JobTaker(queueName, (job) => this.#work(job), {
      connection: options.blocking,
      prefix: names.queuePrefix(options.pool),
      concurrency: options.concurrency,
      // Which stalls are too many is decided here, request by request.
      maxStalledCount: 1000,
      ...stallTimes,
    });
    this.#taker.on("stalled", () => options.counters.add("queue_stalled_total"));
    this.#taker.on("error", (err) => options.log.verbose(1, "queue", { err }));
  }

  /** Requests in hand. */
  get inflight(): number {
    return this.#inflight;
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
    this.#stopHearing();
    await this.#options.envelopes.flush();
  }

  async #work(job: ConsumedJob): Promise<void> {
    const { data, stalledCounter } = job;
    if (isDurable(job)) await this.#durable(job);
    else if (isEnvelope(job)) await this.#infer(job);
    else if ("version" in data) await this.#open(data.version, stalledCounter);
  }

  async #infer(job: Job<InferJobData>): Promise<void> {
    const { data, stalledCounter } = job;
    if (!(await this.#isWaitedFor(data))) await this.#drop(data);
    else if (data.index !== undefined)
      await this.#suspects.runAlone(job, (deaths) => this.#run(data, deaths));
    else if (stalledCounter >= stallsBeforeApart) await this.#takeApart(data);
    else await this.#run(data, stalledCounter);
  }

  async #runOrDrop(data: InferJobData): Promise<void> {
    if (await this.#isWaitedFor(data)) await this.#run(data, 0);
    else await this.#drop(data);
  }

  #isWaitedFor({ gateway }: InferJobData): Promise<boolean> {
    const { gateways, clock } = this.#options;
    return gateways.lives(gateway, clock.now());
  }

  /** Nobody waits for any of its requests. */
  async #drop({ envelope: id, model }: InferJobData): Promise<void> {
    const { envelopes } = this.#options;
    const envelope = await envelopes.take(id, model);
    envelopes.remove(id, envelope?.claimed);
  }

  async #run(data: InferJobData, stalls: number): Promise<void> {
    const { envelopes } = this.#options;
    const { envelope: id, index } = data;
    // Before the envelope is taken: while a version starts, its requests can still be taken back.
    await this.#version(data, stalls);
    const run = this.#runOf(data);
    // Before it is read: from the moment it is marked as taken, this process is told who waits no longer.
    this.#runs.add(run);
    try {
      const envelope = await envelopes.take(id, data.model, index);
      if (envelope) {
        this.#count(envelope.requests.size, stalls);
        // Again, because it may have made room for others meanwhile.
        await this.#runTaken(run, envelope, await this.#version(data, stalls));
      }
      if (index === undefined) envelopes.remove(id, envelope?.claimed);
      else await envelopes.drop(id, index);
    } finally {
      this.#runs.delete(run);
    }
  }

  /** What comes of a durable request goes to its own entry in Redis, whoever asked for it. */
  async #durable(job: Job<DurableJobData>): Promise<void> {
    const { durable: id, model } = job.data;
    const attempt = new JobAttempt(this.#options.durable, job);
    // A job can be cancelled from the moment it begins.
    const observer = this.#observerOf(model);
    const run = new EnvelopeRun(id, (reply) => attempt.answer(reply), observer);
    this.#runs.add(run);
    try {
      const envelope = await attempt.begin();
      if (!envelope) return;
      const stalls = job.stalledCounter;
      const data = { version: envelope.version, model };
      const starting = await this.#version(data, stalls);
      if (!(starting instanceof InferenceError)) await attempt.running();
      this.#count(envelope.requests.size, stalls);
      // Again, because it may have made room for others meanwhile.
      const version = await this.#version(data, stalls);
      await this.#runTaken(run, envelope, version);
      if (!(version instanceof InferenceError)) this.#options.counted(data.version, version);
      await attempt.end();
    } finally {
      this.#runs.delete(run);
    }
  }

  /** The version that is to run the job's requests, or why none can. */
  #version(
    { version, model }: Pick<InferJobData, "version" | "model">,
    stalls: number,
  ): Promise<CountedVersion | InferenceError> {
    if (stalls >= stallsBeforeApart) return Promise.resolve(killed(model));
    return this.#options.versions(version).catch((error: unknown) => InferenceError.from(error));
  }

  async #runTaken(
    run: EnvelopeRun,
    envelope: Envelope,
    version: CountedVersion | InferenceError,
  ): Promise<void> {
    const { size } = envelope.requests;
    this.#inflight += size;
    if (version instanceof InferenceError) await run.fail(envelope, version);
    else await run.run(envelope, this.#sequences.guarded(version), this.#options.clock);
    this.#inflight -= size;
  }

  #runOf({ envelope, gateway, version: key, model }: InferJobData): EnvelopeRun {
    const { replies, counted } = this.#options;
    const answer: Answer = (reply, version) => {
      if (version) counted(key, version);
      return replies.write(gateway, reply);
    };
    return new EnvelopeRun(envelope, answer, this.#observerOf(model));
  }

  #observerOf(model: string): EnvelopeObserver {
    const { counters, coldStarts } = this.#options;
    const waited = counters.histogram("queue_wait_seconds", [model]);
    return {
      waited: (milliseconds) => waited(milliseconds / 1000),
      coldStart: (marks, receivedAt) => coldStarts.answered(model, marks, receivedAt),
    };
  }

  #count(requests: number, stalls: number): void {
    const { counters } = this.#options;
    counters.add("queue_envelopes_total");
    counters.observe("queue_requests_per_envelope", [], requests);
    if (stalls > 0) counters.add("queue_retries_total", [], requests);
  }

  /** One of its requests may be what kills pool workers: each gets a job of its own, so that it dies alone. */
  async #takeApart(data: InferJobData): Promise<void> {
    const { envelopes, queue } = this.#options;
    const envelope = await envelopes.take(data.envelope, data.model);
    if (!envelope) envelopes.remove(data.envelope);
    for (const index of envelope?.requests.keys() ?? []) {
      await queue.add(
        jobNames.infer,
        { ...data, requests: 1, index },
        { ...jobOptions, jobId: `${data.envelope}.${index}`, priority: jobPriorities.infer },
      );
    }
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
