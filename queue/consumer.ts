import { type Job, type Queue, Worker } from "bullmq";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { Redis } from "../redis/connection.ts";
import type { Clock } from "../serving/clock.ts";
import type { CountedVersion } from "../serving/running-version.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { ColdStarts } from "./cold-start.ts";
import { type Envelope, type Envelopes } from "./envelope.ts";
import { type Answer, EnvelopeRun } from "./envelope-run.ts";
import {
  type InferJobData,
  jobNames,
  jobPriorities,
  type OpenJobData,
  stallsBeforeApart,
  stallTimes,
} from "./jobs.ts";
import type { LivingGateways } from "./living-gateways.ts";
import { names, queueName } from "./names.ts";
import { publishOpened } from "./openings.ts";
import type { PoolChannel } from "./pool-channel.ts";
import type { PoolCounters } from "./pool-counters.ts";
import type { ReplyWriter } from "./reply-writer.ts";

export interface ConsumerOptions {
  readonly pool: string;
  readonly commands: Redis;
  /** A connection of its own, with the role `blocking`. */
  readonly blocking: Redis;
  readonly queue: Queue;
  readonly envelopes: Envelopes;
  readonly gateways: LivingGateways;
  readonly replies: ReplyWriter;
  readonly channel: PoolChannel;
  /** The version of a key, started if it has to be. */
  readonly versions: (key: string) => Promise<CountedVersion>;
  /** Told before a reply is written: its version has counted something. */
  readonly counted: (key: string) => void;
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
  readonly #worker: Worker<InferJobData | OpenJobData>;
  readonly #runs = new Set<EnvelopeRun>();
  readonly #stopHearing: () => void;
  #inflight = 0;

  constructor(options: ConsumerOptions) {
    this.#options = options;
    this.#stopHearing = options.channel.on("cancel", ({ envelope, index }) => {
      for (const run of this.#runs) if (run.origin === envelope) run.cancel(index);
    });
    this.#worker = new Worker(queueName, (job) => this.#work(job), {
      connection: options.blocking,
      prefix: names.queuePrefix(options.pool),
      concurrency: options.concurrency,
      // Which stalls are too many is decided here, request by request.
      maxStalledCount: 1000,
      ...stallTimes,
    });
    this.#worker.on("stalled", () => options.counters.add("queue_stalled_total"));
    this.#worker.on("error", (err) => options.log.verbose(1, "queue", { err }));
  }

  /** Requests in hand. */
  get inflight(): number {
    return this.#inflight;
  }

  /** Takes no new job; resolves when those in hand are over. */
  async close(): Promise<void> {
    await this.#worker.close();
    this.#stopHearing();
  }

  async #work(job: Job<InferJobData | OpenJobData>): Promise<void> {
    if ("envelope" in job.data) await this.#infer(job.data, job.stalledCounter);
    else await this.#open(job.data.version, job.stalledCounter);
  }

  async #infer({ envelope: id, model }: InferJobData, stalls: number): Promise<void> {
    const { envelopes, gateways, clock } = this.#options;
    const envelope = await envelopes.take(id);
    if (!envelope) return;
    this.#count(envelope.frames.size, stalls);
    if (await gateways.lives(envelope.head.gateway, clock.now())) {
      const run = this.#runOf(id, envelope, model);
      if (stalls < stallsBeforeApart) await this.#run(run, envelope);
      else if (envelope.frames.size > 1) await this.#takeApart(id, envelope, model);
      else await run.fail(killed(model));
    }
    await envelopes.remove(id, envelope.frames);
  }

  async #run(run: EnvelopeRun, { head, frames }: Envelope): Promise<void> {
    const { versions, clock } = this.#options;
    this.#runs.add(run);
    this.#inflight += frames.size;
    try {
      await run.run(await versions(head.version), clock);
    } catch (error) {
      await run.fail(error);
    } finally {
      this.#inflight -= frames.size;
      this.#runs.delete(run);
    }
  }

  #runOf(id: string, envelope: Envelope, model: string): EnvelopeRun {
    const { replies, counted, counters, coldStarts } = this.#options;
    const { gateway, version, origin = id } = envelope.head;
    const answer: Answer = (reply) => {
      counted(version);
      return replies.write(gateway, reply);
    };
    return new EnvelopeRun(origin, envelope, answer, {
      waited: (milliseconds) =>
        counters.observe("queue_wait_seconds", [model], milliseconds / 1000),
      coldStart: (marks, receivedAt) => coldStarts.answered(model, marks, receivedAt),
    });
  }

  #count(requests: number, stalls: number): void {
    const { counters } = this.#options;
    counters.add("queue_envelopes_total");
    counters.observe("queue_requests_per_envelope", [], requests);
    if (stalls > 0) counters.add("queue_retries_total", [], requests);
  }

  /** One of its requests may be what kills pool workers: each gets a job of its own, so that it dies alone. */
  async #takeApart(id: string, { head, frames }: Envelope, model: string): Promise<void> {
    const { envelopes, queue } = this.#options;
    for (const [index, frame] of frames) {
      const own = `${id}.${index}`;
      await envelopes.put(own, { origin: id, ...head }, new Map([[index, frame]]));
      await queue.add(
        jobNames.infer,
        { envelope: own, model, requests: 1 },
        { jobId: own, priority: jobPriorities.infer, removeOnComplete: true, removeOnFail: true },
      );
    }
  }

  async #open(version: string, stalls: number): Promise<void> {
    const { versions } = this.#options;
    try {
      if (stalls >= stallsBeforeApart) throw killed("");
      const { model } = await versions(version);
      const { config, splitOversizedBatches } = model;
      await publishOpened(this.#options, version, {
        model: { config, ...(splitOversizedBatches !== undefined && { splitOversizedBatches }) },
      });
    } catch (cause) {
      const { code, message } = InferenceError.from(cause);
      await publishOpened(this.#options, version, { error: [code, message] });
    }
  }
}

function killed(model: string): InferenceError {
  const what = model === "" ? "loading the model" : `running this request of model '${model}'`;
  return new InferenceError(StatusCode.Internal, `${what} ended its pool worker, more than once`);
}
