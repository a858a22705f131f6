import type { Job, Queue } from "bullmq";
import type { Clock } from "../serving/clock.ts";
import type { CountedVersion } from "../serving/running-version.ts";
import { type Envelopes, readEnvelope } from "./envelope.ts";
import type { Answer } from "./envelope-run.ts";
import type { EnvelopeRuns, EnvelopeSource } from "./envelope-runs.ts";
import { type InferJobData, jobNames, jobOptions, stallsBeforeApart } from "./jobs.ts";
import type { LivingGateways } from "./living-gateways.ts";
import type { ReplyWriter } from "./reply-writer.ts";
import { Suspects } from "./suspects.ts";
import type { TakenJob } from "./taken-requests.ts";

export interface EnvelopeJobsOptions {
  readonly queue: Queue;
  readonly envelopes: Envelopes;
  readonly gateways: LivingGateways;
  readonly replies: ReplyWriter;
  /** The version of the key need not be started. */
  readonly isLoaded: (key: string) => boolean;
  /** Told before a reply is written: its version has counted something. */
  readonly counted: (key: string, version: CountedVersion) => void;
  readonly clock: Clock;
}

/** Runs the envelopes that gateways have sent, and answers them. */
export class EnvelopeJobs {
  readonly #options: EnvelopeJobsOptions;
  readonly #runs: EnvelopeRuns;
  readonly #suspects = new Suspects();

  constructor(options: EnvelopeJobsOptions, runs: EnvelopeRuns) {
    this.#options = options;
    this.#runs = runs;
  }

  async runJob(job: Job<InferJobData>, taken: TakenJob): Promise<void> {
    const { data, stalledCounter: stalls } = job;
    if (!(await this.#isWaitedFor(data))) await this.#drop(data);
    else if (data.index !== undefined)
      await this.#suspects.runAlone(job, (deaths) => this.#run(data, deaths, taken));
    else if (stalls >= stallsBeforeApart) await this.#takeApart(job);
    else if (data.bundle === undefined) await this.#run(data, stalls, taken);
    else if (this.#options.isLoaded(data.version)) await this.#runSmall(data, stalls, taken);
    else await this.#run(await this.#putDown(job), stalls, taken);
  }

  /** What came another way than by the queue of all. */
  async runFromLine(data: InferJobData): Promise<void> {
    if (await this.#isWaitedFor(data)) await this.#run(data, 0);
    else await this.#drop(data);
  }

  #isWaitedFor({ gateway }: InferJobData): Promise<boolean> {
    const { gateways, clock } = this.#options;
    return gateways.lives(gateway, clock.now());
  }

  /** Nobody waits for any of its requests. */
  async #drop({ envelope: id, model, bundle }: InferJobData): Promise<void> {
    if (bundle !== undefined) return;
    const { envelopes } = this.#options;
    const envelope = await envelopes.take(id, model);
    await envelopes.remove(id, envelope?.claimed);
  }

  /** Runs requests that came with their job. */
  #runSmall(data: InferJobData, stalls: number, taken: TakenJob): Promise<void> {
    return this.#runs.begin(this.#sourceOf(data, taken), async (run) => {
      const envelope = readEnvelope(bundleOf(data), data.model);
      this.#runs.count(envelope.requests.size, stalls);
      await this.#runs.answer(run, envelope, await this.#runs.version(data, stalls));
    });
  }

  /** Gives requests that came with their job a key of their own, where single ones can be taken back. */
  async #putDown(job: Job<InferJobData>): Promise<InferJobData> {
    const { bundle: _, ...data } = job.data;
    const encoded = { bundle: bundleOf(job.data), claimed: new Map() };
    await this.#options.envelopes.put(data.envelope, encoded, data.requests);
    await job.updateData(data);
    return data;
  }

  async #run(data: InferJobData, stalls: number, taken?: TakenJob): Promise<void> {
    const { envelopes } = this.#options;
    const { envelope: id, index } = data;
    // Before the envelope is taken: while a version starts, its requests can still be taken back.
    await this.#runs.version(data, stalls);
    // Before it is read: from the moment it is marked as taken, this process is told who waits no longer.
    await this.#runs.begin(this.#sourceOf(data, taken), async (run) => {
      const envelope = await envelopes.take(id, data.model, index);
      if (envelope) {
        this.#runs.count(envelope.requests.size, stalls);
        // Again, because it may have made room for others meanwhile.
        await this.#runs.answer(run, envelope, await this.#runs.version(data, stalls));
      }
      if (index === undefined) await envelopes.remove(id, envelope?.claimed);
      else await envelopes.drop(id, index);
    });
  }

  #sourceOf(data: InferJobData, taken: TakenJob | undefined): EnvelopeSource {
    const { envelope, gateway, version: key, model } = data;
    const { replies, counted } = this.#options;
    const answer: Answer = (reply, version) => {
      if (version) counted(key, version);
      return replies.write(gateway, reply);
    };
    return { envelope, model, answer, taken, isWaitedFor: () => this.#isWaitedFor(data) };
  }

  /** One of its requests may be what kills pool workers: each gets a job of its own, so that it dies alone. */
  async #takeApart(job: Job<InferJobData>): Promise<void> {
    const { envelopes, queue } = this.#options;
    const { id, priority } = job;
    const data = job.data.bundle === undefined ? job.data : await this.#putDown(job);
    const envelope = await envelopes.take(data.envelope, data.model);
    if (!envelope) await envelopes.remove(data.envelope);
    for (const index of envelope?.requests.keys() ?? []) {
      await queue.add(
        jobNames.infer,
        { ...data, requests: 1, index },
        { ...jobOptions, jobId: `${id}.${index}`, priority },
      );
    }
  }
}

function bundleOf({ bundle = "" }: InferJobData): Buffer {
  return Buffer.from(bundle, "base64");
}
