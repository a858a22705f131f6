import type { Call, Principal } from "../protocol/call.ts";
import type { Engine } from "../protocol/engine.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import {
  type Job,
  type JobAnswer,
  type JobDurability,
  type JobPage,
  type Jobs,
  type KeyClaim,
  type NewJob,
} from "../protocol/job.ts";
import type { ServedModel } from "../protocol/served-model.ts";
import { validRequest } from "../protocol/valid-request.ts";
import { checkWebhook, type DeliveryAttempt, type WebhookSender } from "../protocol/webhook.ts";
import type { Redis } from "../redis/connection.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import { JobChanges } from "./job-changes.ts";
import type { DiskMark } from "./job-disk-mark.ts";
import { newJobId } from "./job-id.ts";
import { claimKey } from "./job-keys.ts";
import { listJobs } from "./job-list.ts";
import type { ObjectStore } from "./job-objects.ts";
import { type JobPool, jobPool, poolOfJob } from "./job-pool.ts";
import { type JobRecord, ownerOf, type RunLimits } from "./job-record.ts";
import { rescueJobs } from "./job-rescue.ts";
import { traceJobs } from "./job-traces.ts";
import type { PoolLink } from "./pool-link.ts";
import { queueAway } from "./queue-away.ts";
import { decodeReply } from "./reply-frame.ts";
import { decodeRequest, encodeRequest } from "./request-frame.ts";
import { itemsOf } from "./sent-envelope.ts";

/** How long durable requests are kept, and how many. */
export interface JobLimits extends RunLimits {
  readonly keyMilliseconds: number;
  /** Of one pool. */
  readonly maxUnfinished: number;
}

export interface GatewayJobsOptions {
  readonly commands: Redis;
  /** Where what is large of a job lies. */
  readonly objects: ObjectStore;
  readonly links: readonly PoolLink[];
  /** The pool that serves a model; throws when there is none. */
  readonly linkOf: (model: string) => PoolLink;
  /** The key of a version that the engine serves. */
  readonly keyOf: (model: ServedModel) => string;
  readonly engine: Pick<Engine, "model">;
  readonly limits: JobLimits;
  readonly durability: JobDurability;
  /** Without it nobody is told of the end of a job. */
  readonly webhooks?: Omit<WebhookSender, "attempt"> | undefined;
  /** Goes on with traces of requests that were accepted; without it this gateway leaves that to others. */
  readonly tracer?: Pick<Tracer, "resume"> | undefined;
  /** Where Redis has to be asked when something is on disk. */
  readonly diskMark?: DiskMark;
}

/** A gateway's side of durable requests: they lie in Redis, and pool workers run them whether this gateway lives or not. */
export class GatewayJobs implements Jobs {
  readonly durability: JobDurability;
  readonly #options: GatewayJobsOptions;
  readonly #pools: readonly JobPool[];
  readonly #changes = new JobChanges();
  readonly #stops: readonly (() => void)[];
  readonly #closing = new AbortController();

  constructor(options: GatewayJobsOptions) {
    this.durability = options.durability;
    this.#options = options;
    const { commands, objects, links, limits, tracer } = options;
    this.#pools = links.map((link) => jobPool(link, commands, objects, limits));
    for (const { channel } of links) this.#changes.listen(channel);
    const stopTraces = tracer && traceJobs({ commands, links, tracer });
    this.#stops = [rescueJobs(this.#pools), ...(stopTraces ? [stopTraces] : [])];
  }

  newId(modelName: string): string {
    return newJobId(this.#options.linkOf(modelName).pool);
  }

  claim(principal: Principal, key: string, claim: KeyClaim): Promise<KeyClaim> {
    const { commands, limits } = this.#options;
    return reach(() =>
      claimKey(commands, [ownerOf(principal), key], claim, limits.keyMilliseconds),
    );
  }

  submit(id: string, given: NewJob): Promise<Job> {
    return reach(async () => {
      const { keyOf, limits, diskMark, webhooks } = this.#options;
      const { request, principal, keyed, webhook, traceparent } = given;
      const { store, queue, channel, webhooks: told } = this.#poolOf(id);
      if (webhook !== undefined) {
        checkWebhook(webhooks, webhook, principal, await told.undeliveredOf(principal.tenant));
      }
      const createdAt = Date.now();
      const keyMilliseconds = keyed ? limits.keyMilliseconds : 0;
      const record = {
        owner: ownerOf(principal),
        tenant: principal.tenant,
        model: request.modelName,
        modelVersion: request.modelVersion,
        version: keyOf(request.model),
        binaryOutputs: given.binaryOutputs,
        createdAt,
        webhook,
        traceparent,
        limits: {
          resultMilliseconds: Math.max(limits.resultMilliseconds, keyMilliseconds),
          failedMilliseconds: Math.max(limits.failedMilliseconds, keyMilliseconds),
          maxResultBytes: limits.maxResultBytes,
          attempts: limits.attempts,
        },
      };
      const frame = encodeRequest({ request, receivedAt: createdAt });
      const first = await store.create(id, record, frame, limits.maxUnfinished);
      const { tenant } = principal;
      await queue.add(id, { model: request.modelName, tenant, items: itemsOf(request) });
      if (first) channel.publish({ type: "demand" });
      await diskMark?.passed();
      const found = await store.read(id);
      if (!found) throw new InferenceError(StatusCode.Unavailable, "Redis has lost the job");
      return found.job;
    });
  }

  async find(principal: Principal, id: string): Promise<Job | undefined> {
    const record = await this.#record(principal, id);
    return record && this.#changes.seen(record.job, record.version, Date.now());
  }

  async answer(principal: Principal, id: string): Promise<JobAnswer | undefined> {
    const record = await this.#record(principal, id);
    if (record?.job.state !== "done") return undefined;
    const frame = await reach(() => this.#poolOf(id).store.result(id));
    const reply = frame && decodeReply(frame);
    if (!reply?.outcome) return undefined;
    if (reply.outcome instanceof InferenceError) throw reply.outcome;
    return { response: reply.outcome, binaryOutputs: record.binaryOutputs };
  }

  list(principal: Principal, limit: number, cursor?: string): Promise<JobPage> {
    const stores = this.#pools.map(({ store }) => store);
    return reach(() => listJobs(stores, ownerOf(principal), limit, cursor));
  }

  async cancel(principal: Principal, id: string): Promise<Job | undefined> {
    if (!(await this.#record(principal, id))) return undefined;
    const { store, queue, channel } = this.#poolOf(id);
    const { resultMilliseconds } = this.#options.limits;
    await reach(async () => {
      if (!(await store.end(id, "cancelled", resultMilliseconds, Date.now()))) return;
      channel.publish({ type: "cancel", envelope: id, index: 0 });
      channel.publish({ type: "job", id, state: "cancelled" });
      await queue.remove(id);
    });
    return this.find(principal, id);
  }

  async replay(
    { principal, permit }: Pick<Call, "principal" | "permit">,
    id: string,
  ): Promise<Job | undefined> {
    const record = await this.#record(principal, id);
    if (record?.job.state !== "failed") return record?.job;
    const { engine, keyOf } = this.#options;
    const { modelName, modelVersion } = record.job;
    const model = await engine.model(modelName, modelVersion);
    const { store, queue, channel } = this.#poolOf(id);
    await reach(async () => {
      const frame = await store.request(id);
      if (!frame) throw new InferenceError(StatusCode.NotFound, "the job's request is not kept");
      // The model may have become another one since.
      const valid = validRequest(model, decodeRequest(frame, modelName).request);
      await permit?.charge(valid.batchSize);
      if (!(await store.replay(id, keyOf(model), Date.now()))) return;
      channel.publish({ type: "job", id, state: "queued" });
      channel.publish({ type: "demand" });
      const { tenant } = principal;
      await queue.addAgain(id, { model: modelName, tenant, items: itemsOf(valid) });
    });
    return this.find(principal, id);
  }

  async deliveries(principal: Principal, id: string): Promise<readonly DeliveryAttempt[]> {
    if (!(await this.#record(principal, id))) return [];
    return reach(() => this.#poolOf(id).webhooks.attempts(id));
  }

  changed(id: string, signal: AbortSignal): Promise<void> {
    return this.#changes.next(id, signal);
  }

  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  close(): void {
    this.#closing.abort();
    for (const stop of this.#stops) stop();
  }

  /** Undefined for what is not there and for what belongs to somebody else. */
  async #record(principal: Principal, id: string): Promise<JobRecord | undefined> {
    const pool = poolOfJob(this.#pools, id);
    const record = await reach(() => Promise.resolve(pool?.store.read(id)));
    return record?.owner === ownerOf(principal) ? record : undefined;
  }

  #poolOf(id: string): JobPool {
    const pool = poolOfJob(this.#pools, id);
    if (pool) return pool;
    throw new InferenceError(StatusCode.Unavailable, "no pool runs the job any more");
  }
}

async function reach<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw cause instanceof InferenceError ? cause : queueAway(cause);
  }
}
