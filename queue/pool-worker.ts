import type { Clock } from "../serving/clock.ts";
import type { CountedVersion } from "../serving/running-version.ts";
import type { Logger } from "../telemetry/logger.ts";
import { ColdStarts } from "./cold-start.ts";
import { Consumer } from "./consumer.ts";
import { Envelopes } from "./envelope.ts";
import type { ObjectStore } from "./job-objects.ts";
import { JobStore } from "./job-store.ts";
import { LivingGateways } from "./living-gateways.ts";
import { PayloadStore } from "./payload-store.ts";
import type { PoolChannel } from "./pool-channel.ts";
import { PoolCounters } from "./pool-counters.ts";
import { openQueue, openShares } from "./pool-link.ts";
import { Presence } from "./presence.ts";
import type { RedisConnections } from "../redis/connections.ts";
import { ReplyWriter } from "./reply-writer.ts";
import { StatisticsBoard } from "./statistics-board.ts";

export interface PoolWorkerOptions {
  /** Unlike that of any other pool worker, before and after. */
  readonly id: string;
  readonly pool: string;
  readonly redis: RedisConnections;
  /** Of the pool; everything in this process hears it through this one. */
  readonly channel: PoolChannel;
  /** Jobs at a time. */
  readonly concurrency: number;
  /** How long it goes on with open sequences when it is to end. @defaultValue 0 */
  readonly drainMilliseconds?: number;
  /** The versions of this process. */
  readonly versions: ResidentVersions;
  /** @defaultValue those of its own */
  readonly counters?: PoolCounters;
  /** Where what is large of durable requests lies. @defaultValue in Redis */
  readonly objects?: ObjectStore;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Versions that this process has loaded, and loads when they are asked for. */
export interface ResidentVersions {
  /** By key; rejects with an InferenceError when it cannot be started. */
  get(key: string): Promise<CountedVersion>;
  /** Nobody sends requests to it any more. */
  retire(key: string): void;
  /** Those that are loaded, by key. */
  loaded(): ReadonlyMap<string, CountedVersion>;
}

const sayMilliseconds = 500;

/** A process's place in a pool: it takes jobs, answers them, and says that it is there. */
export class PoolWorker {
  readonly #options: PoolWorkerOptions;
  readonly #consumer: Consumer;
  readonly #presence: Presence;
  readonly #board: StatisticsBoard;
  readonly #counters: PoolCounters;
  readonly #close: () => Promise<void>;
  readonly #startedAt = Date.now();
  readonly #timer: NodeJS.Timeout;
  #draining = false;

  private constructor(options: PoolWorkerOptions) {
    const { id, pool, redis, channel, versions, clock, log, concurrency } = options;
    const { commands, blocking } = redis;
    const queue = openQueue(pool, commands);
    const shares = openShares(pool, commands);
    this.#options = options;
    this.#presence = new Presence(pool, commands);
    // What is counted, the replies, envelopes that are answered, the end of their job: all down one connection, in this order.
    this.#board = new StatisticsBoard(pool, id, blocking);
    const counters = options.counters ?? new PoolCounters(pool, commands);
    this.#counters = counters;
    this.#consumer = new Consumer({
      id,
      pool,
      commands,
      blocking,
      queue,
      envelopes: new Envelopes(pool, blocking),
      shares,
      gateways: new LivingGateways(commands),
      replies: new ReplyWriter({
        jobs: blocking,
        before: () => this.#board.flush(),
        inHand: () => this.#consumer.inflight,
      }),
      durable: {
        store: new JobStore(pool, commands, options.objects ?? new PayloadStore(commands)),
        channel,
        before: () => this.#board.flush(),
      },
      channel,
      versions: (key) => versions.get(key),
      isLoaded: (key) => versions.loaded().has(key),
      counted: (key, version) => this.#board.changed(key, version.statistics),
      counters,
      coldStarts: new ColdStarts({ pool, counters, log }),
      concurrency,
      clock,
      log,
    });
    channel.on("retired", ({ version }) => versions.retire(version));
    this.#timer = setInterval(() => void this.#say(), sayMilliseconds);
    this.#close = () => {
      shares.close();
      return queue.close();
    };
  }

  /** Resolves when it takes jobs. */
  static async start(options: PoolWorkerOptions): Promise<PoolWorker> {
    const poolWorker = new PoolWorker(options);
    await poolWorker.#say();
    return poolWorker;
  }

  /** Takes nothing new but what belongs to its sequences; resolves when what it has is answered. */
  async close(): Promise<void> {
    this.#draining = true;
    await this.#say();
    await this.#consumer.close(this.#options.drainMilliseconds ?? 0);
    clearInterval(this.#timer);
    await this.#countAll();
    await this.#presence.leave(this.#options.id).catch(() => {});
    await this.#close();
  }

  /** What waits and what was loaded changes without a reply, too. */
  async #countAll(): Promise<void> {
    // While the server is away its commands would wait for it.
    if (this.#options.redis.blocking.status !== "ready") return;
    for (const [key, { statistics }] of this.#options.versions.loaded())
      this.#board.changed(key, statistics);
    await Promise.all([this.#board.flush(), this.#counters.flush()]);
  }

  /** What cannot be said now is said the next time. */
  async #say(): Promise<void> {
    const { id, versions } = this.#options;
    const loaded = [...versions.loaded()];
    const down = loaded.flatMap(([key, { healthy }]) => (healthy ? [] : key));
    const word = {
      id,
      state: this.#draining ? ("draining" as const) : ("ready" as const),
      inFlight: this.#consumer.inflight,
      sequences: this.#consumer.openSequences,
      startedAt: this.#startedAt,
      resident: loaded.map(([key]) => key),
      ...(down.length > 0 && { down }),
    };
    await Promise.allSettled([this.#presence.say(word, Date.now()), this.#countAll()]);
  }
}
