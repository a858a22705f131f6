import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { ResidentVersions } from "../../pool/resident-versions.ts";
import { directScheduler } from "../../pool/scheduler/direct-scheduler.ts";
import { sequenceBatchScheduler } from "../../pool/scheduler/sequence-batch-scheduler.ts";
import { sequenceModel } from "../../pool/scheduler/sequence-model.ts";
import type { InstanceGroup } from "../../pool/instance/model-instance.ts";
import { anonymous, Call } from "../../protocol/call.ts";
import type { InferenceRequest } from "../../protocol/inference.ts";
import type { ModelDynamicBatching } from "../../protocol/model-config.ts";
import { publishOpened } from "../../queue/openings.ts";
import { names } from "../../queue/names.ts";
import { PoolChannel } from "../../queue/pool-channel.ts";
import { openQueue } from "../../queue/pool-link.ts";
import { PoolWorker } from "../../queue/pool-worker.ts";
import { RemoteVersions } from "../../queue/remote-versions.ts";
import { TicketStore } from "../../queue/ticket-store.ts";
import { ticketOf, versionKey } from "../../queue/version-ticket.ts";
import { connect, type Redis } from "../../redis/connection.ts";
import type { RedisConnections } from "../../redis/connections.ts";
import { systemClock } from "../../serving/clock.ts";
import { ModelStatisticsRecorder } from "../../serving/model-statistics.ts";
import type {
  CountedVersion,
  RunningVersion,
  VersionSource,
} from "../../serving/running-version.ts";
import { type HandHeldExecution, HandHeldInstances } from "./hand-held-instances.ts";
import { KeptAnswers, requestFor, type SentRequest } from "./requests.ts";
import { plainBatching, noPolicy } from "./dynamic-batching.ts";
import { modelInput, modelOutput, servedModel } from "./served-model.ts";
import { SilentLog } from "./silent-log.ts";

/** A gateway's side of the queue. */
export interface StandGateway {
  readonly name: string;
  readonly redis: RedisConnections;
  readonly versions: RemoteVersions;
  /** Ends as a process that is killed: it says nothing any more, and nobody hears of its end. */
  die(): void;
  close(): Promise<void>;
}

/** A pool worker whose executions last until the test says so. */
export interface StandPoolWorker {
  readonly name: string;
  readonly poolWorker: PoolWorker;
  readonly versions: ResidentVersions;
  /** Names of the models that it has begun to start. */
  readonly started: string[];
  /** All so far, of all its versions. */
  readonly executions: readonly HandHeldExecution[];
  close(): Promise<void>;
}

export interface StandPoolWorkerOptions {
  readonly concurrency?: number;
  readonly drainMilliseconds?: number;
  /** Starts wait for it. */
  readonly starting?: (model: string) => Promise<void>;
  /** What runs all its models instead of the test. */
  readonly instances?: InstanceGroup;
}

const patienceMilliseconds = 5000;

/** A model that answers a request as often as it likes. */
export const decoupledModel = "decoupled";

/** A model whose requests may wait for 50 ms, unless their priority is 1: these are only delayed then. */
export const hastyModel = "hasty";

/** A model whose versions have sequences, eight at a time. */
export const statefulModel = "stateful";
const slots = 8;
/** Of its sequences. */
export const idleMilliseconds = 60_000;

/** Gateways and pool workers of a pool of their own in this process, on a real Redis that tests share. */
export class QueueStand {
  readonly pool = randomBytes(6).toString("hex");
  /** For what a test looks up itself. */
  readonly commands: Redis;
  readonly url: string;
  readonly #closing: (() => Promise<void>)[] = [];

  private constructor(url: string, commands: Redis) {
    this.url = url;
    this.commands = commands;
  }

  static async open(url: string): Promise<QueueStand> {
    return new QueueStand(url, await connect(url, "commands"));
  }

  /** @param targetInFlight the requests that one pool worker should have in hand */
  async gateway(targetInFlight = 32): Promise<StandGateway> {
    const name = randomBytes(6).toString("hex");
    const redis = await this.#connect();
    const { pool } = this;
    const versions = await RemoteVersions.open({
      gateway: name,
      pools: [{ name: pool, targetInFlight }],
      poolOf: () => pool,
      redis,
      clock: systemClock,
    });
    const die = (): void => disconnect(redis);
    const close = this.#closeOnce(async () => {
      versions.leave();
      await versions.close();
      disconnect(redis);
    });
    return { name, redis, versions, die, close };
  }

  async poolWorker(options: StandPoolWorkerOptions = {}): Promise<StandPoolWorker> {
    const name = randomBytes(6).toString("hex");
    const redis = await this.#connect();
    const tickets = new TicketStore(this.pool, redis.commands);
    const started: string[] = [];
    const instances: HandHeldInstances[] = [];
    const versions = new ResidentVersions({
      budgetBytes: 1000,
      find: async (key) => ({
        bytes: 1,
        start: async () => {
          const { name: model } = await tickets.get(key);
          started.push(model);
          await options.starting?.(model);
          if (options.instances) return countedVersion(model, options.instances);
          const own = new HandHeldInstances(model === statefulModel ? slots : 1);
          instances.push(own);
          return countedVersion(model, own);
        },
      }),
    });
    const poolWorker = await PoolWorker.start({
      id: name,
      pool: this.pool,
      redis,
      channel: await PoolChannel.open(this.pool, redis.commands, redis.subscriber),
      concurrency: options.concurrency ?? 4,
      drainMilliseconds: options.drainMilliseconds ?? 0,
      versions,
      clock: systemClock,
      log: new SilentLog(),
    });
    const close = this.#closeOnce(async () => {
      // A test that has failed may have left executions that never end.
      const patience = sleep(patienceMilliseconds, undefined, { ref: false });
      await Promise.race([patience, endOf(poolWorker, versions)]);
      disconnect(redis);
    });
    return {
      name,
      poolWorker,
      versions,
      started,
      get executions() {
        return instances.flatMap(({ executions }) => executions);
      },
      close,
    };
  }

  /** A version that a gateway serves, as if some pool worker had started it once before. */
  async serve(gateway: StandGateway, model = "echo", generation = 0): Promise<RunningVersion> {
    const { commands, subscriber } = gateway.redis;
    const { pool } = this;
    const channel = await PoolChannel.open(pool, commands, subscriber);
    const { config } = echoModel(model);
    await publishOpened({ pool, commands, channel }, keyOf(model, generation), {
      model: { config },
    });
    return gateway.versions.start(sourceOf(model), generation);
  }

  async close(): Promise<void> {
    // oxlint-disable-next-line no-await-in-loop -- the last first, one after the other
    for (const close of this.#closing.splice(0).toReversed()) await close();
    this.commands.disconnect();
  }

  async #connect(): Promise<RedisConnections> {
    const [commands, blocking, subscriber] = await Promise.all([
      connect(this.url, "commands"),
      connect(this.url, "blocking"),
      connect(this.url, "subscriber"),
    ]);
    return { commands, blocking, subscriber };
  }

  /** Gives what the test may call, and what is called at its end. */
  #closeOnce(end: () => Promise<void>): () => Promise<void> {
    let closed: Promise<void> | undefined;
    const close = (): Promise<void> => (closed ??= end());
    this.#closing.push(close);
    return close;
  }
}

/** How many requests each envelope in Redis has whose job is not over, in the order in which they were made. */
export async function openEnvelopes({ pool, commands }: QueueStand): Promise<number[]> {
  const queue = openQueue(pool, commands);
  const jobs = await queue.getJobs();
  await queue.close();
  const data = jobs.flatMap((job) => job?.data ?? []);
  const sizes = data
    .toSorted((a, b) => Number(a.envelope > b.envelope) - 0.5)
    .map(({ envelope, bundle, requests }) =>
      bundle === undefined ? commands.hget(names.envelope(pool, envelope), "open") : requests,
    );
  return (await Promise.all(sizes)).map(Number);
}

/** Hands a request to a version, as an engine does. */
export function send(
  { model, scheduler }: RunningVersion,
  more: Partial<InferenceRequest> = {},
  tenant = "default",
): SentRequest {
  const pending = prepare(model, more, tenant);
  scheduler.enqueue(pending);
  return pending;
}

/** A request that no scheduler has seen yet. */
export function prepare(
  model: RunningVersion["model"],
  more: Partial<InferenceRequest> = {},
  tenant = "default",
): SentRequest {
  const enqueuedAt = systemClock.now();
  return {
    request: requestFor(model, [4], more),
    call: new Call({ ...anonymous, tenant }, enqueuedAt),
    sink: new KeptAnswers(),
    enqueuedAt,
  };
}

/** The version's key in Redis. */
export function keyOf(model: string, generation = 0): string {
  return versionKey(ticketOf(sourceOf(model), generation));
}

/** A version that nobody has to fetch. */
export function sourceOf(model: string): VersionSource {
  const { name, version, config } = echoModel(model);
  return { name, version, config, fingerprint: "files", fetch: fetchNothing };
}

function fetchNothing(): never {
  throw new Error("a gateway fetches nothing");
}

const sequenceBatching = {
  maxSequenceIdleMicroseconds: idleMilliseconds * 1000,
  controlInput: [],
  state: [],
  iterativeSequence: false,
} as const;

const fiftyMilliseconds = { ...noPolicy, defaultTimeoutMicroseconds: 50_000 };
const hasty: ModelDynamicBatching = {
  ...plainBatching,
  priorityLevels: 2,
  defaultPriorityLevel: 2,
  defaultQueuePolicy: fiftyMilliseconds,
  priorityQueuePolicy: { 1: { ...fiftyMilliseconds, timeoutAction: "DELAY" } },
};

function echoModel(name: string): RunningVersion["model"] {
  return servedModel(name, {
    input: [modelInput("IN", "TYPE_FP32", [-1])],
    output: [modelOutput("OUT", "TYPE_FP32", [-1])],
    ...(name === hastyModel && { dynamicBatching: hasty }),
    ...(name === statefulModel && { sequenceBatching }),
    ...(name === decoupledModel && { modelTransactionPolicy: { decoupled: true } }),
  });
}

/** A version as a pool worker has it. */
export function countedVersion(name: string, instances: InstanceGroup): CountedVersion {
  const model = echoModel(name);
  const statistics = new ModelStatisticsRecorder({ ...model, tags: {} });
  const options = { instances, statistics, clock: systemClock };
  const sequences = sequenceModel(model.config, sequenceBatching, new Map());
  const scheduler = model.config.sequenceBatching
    ? sequenceBatchScheduler(sequences, options)
    : directScheduler(options);
  return { model, scheduler, healthy: true, statistics, close: () => scheduler.stop() };
}

async function endOf(poolWorker: PoolWorker, versions: ResidentVersions): Promise<void> {
  await poolWorker.close();
  await versions.close();
}

function disconnect({ commands, blocking, subscriber }: RedisConnections): void {
  for (const redis of [commands, blocking, subscriber]) redis.disconnect();
}
