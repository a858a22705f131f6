import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Call, type Principal } from "../protocol/call.ts";
import type { Engine } from "../protocol/engine.ts";
import { InferenceError, invalidArgument, StatusCode } from "../protocol/error.ts";
import {
  hasEnded,
  type Job,
  type JobAnswer,
  type JobPage,
  type Jobs,
  type KeyClaim,
  type NewJob,
} from "../protocol/job.ts";
import type { Tensor } from "../protocol/tensor.ts";
import {
  checkWebhook,
  type DeliveryAttempt,
  jobDelivery,
  keptAttempts,
} from "../protocol/webhook.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import { JobEntries, type JobEntry } from "./job-entries.ts";
import type { MemoryDeliveries } from "./memory-deliveries.ts";

/** How long jobs are kept in memory, and how many. */
export interface MemoryJobsOptions {
  readonly engine: Pick<Engine, "infer" | "model">;
  readonly resultMilliseconds: number;
  readonly failedMilliseconds: number;
  readonly keyMilliseconds: number;
  readonly attempts: number;
  readonly maxUnfinished: number;
  readonly maxResultBytes: number;
  /** Of all requests and results together. */
  readonly maxBytes: number;
  /** Without it nobody is told of the end of a job. */
  readonly webhooks?: MemoryDeliveries | undefined;
  /** Goes on with traces of requests that were accepted; without it nobody does. */
  readonly tracer?: Pick<Tracer, "resume"> | undefined;
}

const firstBackoffMilliseconds = 1000;

/** Jobs in the process that runs them: the same as behind a queue, but that they end with the process. */
export class MemoryJobs implements Jobs {
  readonly durability = "none";
  readonly #options: MemoryJobsOptions;
  readonly #entries: JobEntries;
  readonly #closing = new AbortController();

  constructor(options: MemoryJobsOptions) {
    this.#options = options;
    this.#entries = new JobEntries(options);
  }

  newId(): string {
    return `j_${randomBytes(18).toString("base64url")}`;
  }

  claim(principal: Principal, key: string, claim: KeyClaim): Promise<KeyClaim> {
    const subject = JSON.stringify([principal.tenant, principal.name, key]);
    return Promise.resolve(this.#entries.claim(subject, claim, Date.now()));
  }

  async submit(id: string, given: NewJob): Promise<Job> {
    const { request, principal, webhook } = given;
    const { webhooks } = this.#options;
    if (webhook !== undefined) {
      const undelivered = webhooks?.undeliveredOf(principal.tenant) ?? 0;
      checkWebhook(webhooks?.sender, webhook, principal, undelivered);
    }
    const known = this.#entries.get(id);
    if (known) return known.job;
    const { modelName, modelVersion } = request;
    const job: Job = {
      id,
      state: "queued",
      modelName,
      modelVersion,
      createdAt: Date.now(),
      attempts: 0,
      changes: 1,
    };
    const bytes = bytesOf(request.inputs);
    const entry: JobEntry = { ...given, job, bytes, deliveries: [] };
    this.#entries.add(entry);
    void this.#run(entry);
    return job;
  }

  async find(principal: Principal, id: string): Promise<Job | undefined> {
    return this.#entryOf(principal, id)?.job;
  }

  async answer(principal: Principal, id: string): Promise<JobAnswer | undefined> {
    const entry = this.#entryOf(principal, id);
    if (!entry?.response) return undefined;
    return { response: entry.response, binaryOutputs: entry.binaryOutputs };
  }

  async list(principal: Principal, limit: number, cursor?: string): Promise<JobPage> {
    const all = this.#entries.newest().filter((entry) => isOf(entry, principal));
    const last = cursor === undefined ? -1 : all.findIndex(({ job }) => job.id === cursor);
    if (cursor !== undefined && last < 0) {
      throw invalidArgument("cursor: given another text, expected the one of the page before");
    }
    const jobs = all.slice(last + 1, last + 1 + limit).map(({ job }) => job);
    const next = last + 1 + limit < all.length ? jobs.at(-1)?.id : undefined;
    return { jobs, ...(next !== undefined && { cursor: next }) };
  }

  async cancel(principal: Principal, id: string): Promise<Job | undefined> {
    const entry = this.#entryOf(principal, id);
    if (entry && !hasEnded(entry.job)) {
      this.#end(entry, { state: "cancelled" });
      entry.call?.cancel();
    }
    return entry?.job;
  }

  async replay(
    { principal, permit }: Pick<Call, "principal" | "permit">,
    id: string,
  ): Promise<Job | undefined> {
    const entry = this.#entryOf(principal, id);
    if (entry?.job.state === "failed") await permit?.charge(entry.request.batchSize);
    // Meanwhile another one may have had it run again.
    if (entry?.job.state !== "failed") return entry?.job;
    const { error: _, endedAt: __, ...job } = entry.job;
    entry.job = job;
    this.#entries.change(entry, { state: "queued", attempts: 0 });
    void this.#run(entry);
    return entry.job;
  }

  async deliveries(principal: Principal, id: string): Promise<readonly DeliveryAttempt[]> {
    return this.#entryOf(principal, id)?.deliveries ?? [];
  }

  changed(id: string, signal: AbortSignal): Promise<void> {
    return this.#entries.changed(id, signal);
  }

  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  close(): void {
    this.#closing.abort();
    this.#entries.close();
    this.#options.webhooks?.close();
  }

  #entryOf(principal: Principal, id: string): JobEntry | undefined {
    const entry = this.#entries.get(id);
    return entry && isOf(entry, principal) ? entry : undefined;
  }

  /** Tries as often as it may, and as it helps; never rejects. */
  async #run(entry: JobEntry): Promise<void> {
    for (let attempt = 1; !hasEnded(entry.job); attempt++) {
      const failed = await this.#attempt(entry, attempt);
      if (!failed || hasEnded(entry.job)) return;
      const { code, message } = failed;
      const error = { code, message };
      if (code !== StatusCode.Unavailable || attempt >= this.#options.attempts) {
        this.#end(entry, { state: "failed", error });
        return;
      }
      this.#entries.change(entry, { state: "queued", error });
      await sleep(firstBackoffMilliseconds * 2 ** (attempt - 1) * (0.5 + Math.random() / 2));
    }
  }

  #end(entry: JobEntry, change: Partial<Job>): void {
    this.#entries.change(entry, { ...change, endedAt: Date.now() });
    const { job, webhook: url, principal, deliveries, traceparent } = entry;
    if (url === undefined) return;
    const delivery = jobDelivery(job, { url, tenant: principal.tenant, traceparent });
    if (!delivery) return;
    this.#options.webhooks?.add(delivery, (attempt) => {
      deliveries.push(attempt);
      if (deliveries.length > keptAttempts) deliveries.shift();
    });
  }

  /** Gives what went wrong. */
  async #attempt(entry: JobEntry, attempts: number): Promise<InferenceError | undefined> {
    const { engine, maxResultBytes } = this.#options;
    this.#entries.change(entry, { state: "running", attempts, startedAt: Date.now() });
    const call = this.#callFor(entry);
    entry.call = call;
    try {
      const response = await engine.infer(entry.request, call);
      const bytes = bytesOf(response.outputs);
      if (bytes > maxResultBytes) throw tooLarge(bytes, maxResultBytes);
      if (hasEnded(entry.job)) return undefined;
      entry.response = response;
      this.#entries.resize(entry, bytes);
      const { error: _, ...job } = entry.job;
      entry.job = job;
      this.#end(entry, { state: "done" });
      return undefined;
    } catch (cause) {
      const error = InferenceError.from(cause);
      call.trace?.failed(error);
      return error;
    } finally {
      call.trace?.close(performance.now());
    }
  }

  #callFor({ principal, traceparent, job: { id: job } }: JobEntry): Call {
    const startAt = performance.now();
    const call = new Call(principal, startAt, traceparent);
    if (traceparent !== undefined)
      call.trace = this.#options.tracer?.resume({ traceparent, job, startAt });
    return call;
  }
}

function isOf({ principal }: JobEntry, { name, tenant }: Principal): boolean {
  return principal.name === name && principal.tenant === tenant;
}

function bytesOf(tensors: readonly Tensor[]): number {
  return tensors.reduce((sum, { bytes }) => sum + bytes.byteLength, 0);
}

function tooLarge(bytes: number, maxResultBytes: number): InferenceError {
  return invalidArgument(
    `the job's result has ${bytes} bytes, expected at most ${maxResultBytes}. ` +
      "Use --job-max-result-bytes to increase the limit.",
  );
}
