import { randomUUID } from "node:crypto";
import { type Job, UnrecoverableError } from "bullmq";
import { InferenceError, invalidArgument, StatusCode } from "../protocol/error.ts";
import type { JobState } from "../protocol/job.ts";
import type { CountedVersion } from "../serving/running-version.ts";
import type { Envelope } from "./envelope.ts";
import type { DurableJobData } from "./job-queue.ts";
import type { JobEnd, JobInput, JobStore } from "./job-store.ts";
import { persist } from "./persist.ts";
import type { PoolChannel } from "./pool-channel.ts";
import { encodeReply, type Reply } from "./reply-frame.ts";
import { decodeRequest } from "./request-frame.ts";

export interface JobAttemptOptions {
  readonly store: JobStore;
  readonly channel: PoolChannel;
  /** Writes what has to be in Redis before anyone reads a result: what was counted. */
  readonly before: () => Promise<void>;
}

/** More is not told to a trace: everybody in the pool hears it. */
const longestRequestId = 256;
const longestMessage = 4096;

/** A request that lies in the entry of its job, and the key of the version that is to run it. */
export interface DurableEnvelope extends Envelope {
  readonly version: string;
}

/** One attempt of a pool worker to run a durable request: gathers what comes of it, and decides whether it is the last. */
export class JobAttempt {
  readonly #options: JobAttemptOptions;
  readonly #job: Job<DurableJobData>;
  #input: JobInput | undefined;
  #responses = 0;
  #reply: Reply | undefined;
  #request = "";
  #version = "";

  constructor(options: JobAttemptOptions, job: Job<DurableJobData>) {
    this.#options = options;
    this.#job = job;
  }

  /** Undefined when the job has ended, as one that was cancelled. */
  async begin(): Promise<DurableEnvelope | undefined> {
    const { store } = this.#options;
    this.#input = await store.begin(this.#id, this.#job.attemptsStarted, Date.now());
    if (!this.#input) return undefined;
    this.#tell("starting");
    const { version, tenant, frame, traceparent: trace } = this.#input;
    const { model } = this.#job.data;
    const decoded = frame && decodeRequest(frame, model);
    this.#request = decoded?.request.id ?? "";
    const sent = decoded && { ...decoded, ...(trace !== undefined && { trace }) };
    const requests = new Map(sent ? [[0, sent] as const] : []);
    return { version, head: { tenant }, requests, claimed: [] };
  }

  /** The version can answer. */
  async running(): Promise<void> {
    // Nobody depends on this state: a Redis that is away hears of the next one.
    await this.#options.store.running(this.#id, Date.now()).catch(() => {});
    this.#tell("running");
  }

  /** Takes a reply to the request. */
  answer(reply: Reply, version?: CountedVersion): Promise<void> {
    this.#version = version?.model.version ?? "";
    if (reply.outcome) {
      this.#responses++;
      this.#reply = reply;
    }
    return Promise.resolve();
  }

  /** Writes what came of it. Rejects when the queue is to try again, or to count a failure. */
  async end(): Promise<void> {
    const input = this.#input;
    if (!input) return;
    const outcome = this.#outcome(input);
    this.#tellTrace(input, outcome);
    if (!(outcome instanceof InferenceError)) {
      await this.#finish({ result: outcome }, input.limits.resultMilliseconds);
      return;
    }
    const { code, message } = outcome;
    if (code === StatusCode.Unavailable && this.#job.attemptsMade + 1 < input.limits.attempts) {
      const { store } = this.#options;
      const error = { code, message };
      if (!(await persist(() => store.queueAgain(this.#id, error, Date.now())))) return;
      this.#tell("queued");
      throw new Error(message);
    }
    const failed = { error: { code, message } };
    if (await this.#finish(failed, input.limits.failedMilliseconds)) {
      throw new UnrecoverableError(message);
    }
  }

  get #id(): string {
    return this.#job.data.durable;
  }

  /** The only response, as it is kept. */
  #outcome({ limits: { maxResultBytes }, frame }: JobInput): Buffer | InferenceError {
    if (!frame) return new InferenceError(StatusCode.Internal, "the job's request is lost");
    const reply = this.#reply;
    if (reply?.outcome instanceof InferenceError) return reply.outcome;
    if (!reply || this.#responses !== 1) {
      const text = `expected a single response, got ${this.#responses}`;
      return new InferenceError(StatusCode.Internal, text);
    }
    const { coldStart: _, times: __, ...kept } = reply;
    const result = encodeReply({ ...kept, final: true });
    if (result.byteLength <= maxResultBytes) return result;
    return invalidArgument(
      `the job's result has ${result.byteLength} bytes, expected at most ${maxResultBytes}. ` +
        "Use --job-max-result-bytes to increase the limit.",
    );
  }

  /** False when the job ended before, by another pool worker or because it was cancelled. */
  async #finish(end: JobEnd, keptMilliseconds: number): Promise<boolean> {
    const { store, before } = this.#options;
    await before();
    const ended = await persist(() => store.end(this.#id, end, keptMilliseconds, Date.now()));
    if (ended) this.#tell(typeof end === "object" && "error" in end ? "failed" : "done");
    return ended;
  }

  #tellTrace({ traceparent, queuedAt }: JobInput, outcome: Buffer | InferenceError): void {
    if (traceparent === undefined) return;
    const { times, coldStart } = this.#reply ?? {};
    const failed = outcome instanceof InferenceError && {
      error: { code: outcome.code, message: outcome.message.slice(0, longestMessage) },
    };
    this.#options.channel.publish({
      type: "attempt",
      id: this.#id,
      attempt: randomUUID(),
      traceparent,
      request: this.#request.slice(0, longestRequestId),
      model: this.#job.data.model,
      version: this.#version,
      queuedAt,
      ...(times && { times }),
      ...(coldStart && { coldStart }),
      ...failed,
    });
  }

  #tell(state: JobState): void {
    this.#options.channel.publish({ type: "job", id: this.#id, state });
  }
}
