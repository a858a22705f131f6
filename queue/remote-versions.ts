import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { ServedModel } from "../protocol/served-model.ts";
import type { RedisConnections } from "../redis/connections.ts";
import { Lease } from "../redis/lease.ts";
import type { Clock } from "../serving/clock.ts";
import type { SharedStatistics } from "../serving/ensemble/start-ensemble.ts";
import type { ModelStatisticsRecorder } from "../serving/model-statistics.ts";
import type { RunningVersion, VersionSource } from "../serving/running-version.ts";
import type { QueueObservation } from "../telemetry/queue-metrics.ts";
import { ensembleKey, EnsembleStatistics } from "./ensemble-statistics.ts";
import { gatewayLeaseMilliseconds, LivingGateways } from "./living-gateways.ts";
import { names } from "./names.ts";
import { queueAway } from "./queue-away.ts";
import { openPoolLink, type PoolLink } from "./pool-link.ts";
import { ReplyReader } from "./reply-reader.ts";
import { remoteVersion } from "./remote-version.ts";
import { ticketOf, versionKey } from "./version-ticket.ts";

/** A pool, as far as its gateways must know it. */
export interface RemotePool {
  readonly name: string;
  /** The requests that one pool worker should have in hand. */
  readonly targetInFlight: number;
}

export interface RemoteVersionsOptions {
  /** Unlike that of any other gateway, before and after. */
  readonly gateway: string;
  readonly pools: readonly RemotePool[];
  /** The pool that serves a model. */
  readonly poolOf: (model: string) => string | undefined;
  readonly redis: RedisConnections;
  readonly clock: Clock;
  /** Called when another gateway has opened a version that this one does not serve, or closed one that it does. */
  readonly onChange?: () => void;
}

interface Served {
  readonly link: PoolLink;
  /** Pool workers must know of it, in case that Redis forgets it. */
  readonly keepTicket: () => Promise<void>;
}

const sayMilliseconds = 500;
/** Between two looks at what Redis may have lost. */
const tendMilliseconds = 1000;
const foldMilliseconds = 30_000;
/** A process that was stopped for a while must not find its counters added to a sum. */
const silentMilliseconds = 10 * 60_000;

/** A gateway's side of the queue: starts versions whose requests pool workers run, wherever they are. */
export class RemoteVersions {
  readonly #options: RemoteVersionsOptions;
  readonly #links: ReadonlyMap<string, PoolLink>;
  readonly #reader: ReplyReader;
  readonly #timers: readonly NodeJS.Timeout[];
  /** By key, the versions that are served here. */
  readonly #served = new Map<string, Served>();
  /** Keys of versions that this gateway is about to serve. */
  readonly #opening = new Set<string>();
  readonly #gateways: LivingGateways;
  readonly #statisticsLease: Lease;
  readonly #keys = new WeakMap<ServedModel, string>();
  readonly #ensembles: EnsembleStatistics;
  #leaving = false;

  private constructor(options: RemoteVersionsOptions, links: readonly PoolLink[]) {
    this.#options = options;
    this.#links = new Map(links.map((link) => [link.pool, link]));
    this.#reader = new ReplyReader(options.gateway, options.redis, (replies) => {
      for (const link of links) link.sender.receive(replies);
    });
    this.#gateways = new LivingGateways(options.redis.commands);
    this.#ensembles = new EnsembleStatistics(options.gateway, options.redis.commands);
    this.#statisticsLease = new Lease({
      redis: options.redis.commands,
      key: names.statisticsLease,
      lengthMilliseconds: gatewayLeaseMilliseconds,
    });
    this.#timers = [
      setInterval(() => void this.#say(), sayMilliseconds),
      setInterval(() => void this.#tend(), tendMilliseconds),
      setInterval(
        () => void this.foldStatistics(Date.now() - silentMilliseconds),
        foldMilliseconds,
      ),
    ];
    for (const link of links) this.#followOthers(link);
  }

  static async open(options: RemoteVersionsOptions): Promise<RemoteVersions> {
    const { gateway, pools, redis, clock } = options;
    const { commands, subscriber } = redis;
    const links = await Promise.all(
      pools.map(({ name: pool, targetInFlight }) =>
        openPoolLink({ pool, targetInFlight, gateway, commands, subscriber, clock }),
      ),
    );
    const versions = new RemoteVersions(options, links);
    await versions.#say();
    return versions;
  }

  /**
   * Resolves when some pool worker has started the version, now or once before.
   *
   * @param generation see {@link VersionTicket.generation}
   */
  async start(source: VersionSource, generation: number): Promise<RunningVersion> {
    const link = this.linkOf(source.name);
    const ticket = ticketOf(source, generation);
    const key = versionKey(ticket);
    this.#opening.add(key);
    const model = await link.openings
      .open(key, ticket, source)
      .catch((cause: unknown) => {
        throw cause instanceof InferenceError ? cause : queueAway(cause);
      })
      .finally(() => this.#opening.delete(key));
    this.#keys.set(model, key);
    const { clock } = this.#options;
    const version = remoteVersion(key, model, { link, clock, leaving: () => this.#leaving });
    const served: Served = { link, keepTicket: () => link.tickets.keep(key, ticket, source.files) };
    this.#served.set(key, served);
    return {
      ...version,
      get healthy() {
        return version.healthy;
      },
      close: () => {
        // The same version may be served again by now.
        if (this.#served.get(key) === served) this.#served.delete(key);
        return version.close();
      },
    };
  }

  /**
   * Statistics of an ensemble, which every gateway runs itself: those of all gateways together.
   *
   * @param generation see {@link VersionTicket.generation}
   * @param own what this gateway counts
   */
  shareStatistics(
    source: VersionSource,
    generation: number,
    { model, members }: Required<Pick<RunningVersion, "model" | "members">>,
    own: ModelStatisticsRecorder,
  ): SharedStatistics {
    const ticket = versionKey(ticketOf(source, generation));
    const key = ensembleKey(
      ticket,
      members.map((member) => this.keyOf(member.model)),
    );
    this.#keys.set(model, key);
    const statistics = this.#ensembles.summed(key, own);
    return { statistics, end: () => this.#ensembles.ended(key, own) };
  }

  /** What the metrics read at a scrape, for each pool. */
  observations(): Promise<readonly QueueObservation[]> {
    return Promise.all([...this.#links.values()].map((link) => link.observe()));
  }

  /** The ways to all pools. */
  get links(): readonly PoolLink[] {
    return [...this.#links.values()];
  }

  /** The key of a version that was started here. */
  keyOf(model: ServedModel): string {
    const key = this.#keys.get(model);
    if (key !== undefined) return key;
    throw new InferenceError(
      StatusCode.Unavailable,
      `model '${model.name}' is not served any more`,
    );
  }

  /** This gateway is about to end: versions that it closes from now on go on to be served by others. */
  leave(): void {
    this.#leaving = true;
  }

  /**
   * Keeps short what is read for each version's statistics; of several gateways one does it.
   *
   * @param before processes that have counted since then are left alone; milliseconds since the epoch
   */
  async foldStatistics(before: number): Promise<void> {
    if (!this.#statisticsLease.held) return;
    const folded = [...this.#served].map(async ([key, { link }]) => {
      const poolWorkers = (await link.presence.present(Date.now())).map(({ id }) => id);
      await link.board.foldGone(
        key,
        before,
        async (process) =>
          poolWorkers.includes(process) || this.#gateways.lives(process, performance.now()),
      );
    });
    const ensembles = this.#ensembles.fold(before, (gateway) =>
      this.#gateways.lives(gateway, performance.now()),
    );
    // What cannot be done now is done the next time.
    await Promise.allSettled([...folded, ensembles]);
  }

  /** Once everything has been answered. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.#statisticsLease.close();
    await this.#reader.close();
    const { redis, gateway } = this.#options;
    await Promise.allSettled(
      [...this.#links.values()].flatMap(({ board, meter }) => [board.flush(), meter.say()]),
    );
    await redis.commands.del(names.gateway(gateway)).catch(() => {});
    await Promise.all([...this.#links.values()].map((link) => link.close()));
  }

  /** The way to the pool that serves a model; throws when there is none. */
  linkOf(model: string): PoolLink {
    const pool = this.#options.poolOf(model);
    const link = pool === undefined ? undefined : this.#links.get(pool);
    if (link) return link;
    throw new InferenceError(StatusCode.Unavailable, `no pool serves the model '${model}'`);
  }

  /** Others may have seen what this gateway would see only later. */
  #followOthers({ channel }: PoolLink): void {
    channel.on("opened", ({ version }) => {
      if (!this.#opening.has(version) && !this.#served.has(version)) this.#options.onChange?.();
    });
    channel.on("retired", ({ version }) => {
      if (this.#served.has(version)) this.#options.onChange?.();
    });
  }

  /** Tells the others that this gateway lives and what it waits for. What cannot be said now is said the next time. */
  async #say(): Promise<void> {
    const { redis, gateway } = this.#options;
    const links = [...this.#links.values()];
    await Promise.allSettled([
      redis.commands.set(names.gateway(gateway), "1", "PX", gatewayLeaseMilliseconds),
      ...links.map(({ meter }) => meter.say()),
      ...links.map(({ board }) => board.flush()),
      this.#ensembles.say(),
    ]);
  }

  /** Puts back what Redis has lost, however that came: tickets first, because requests need them. */
  async #tend(): Promise<void> {
    await Promise.allSettled([...this.#served.values()].map(({ keepTicket }) => keepTicket()));
    const links = [...this.#links.values()];
    await Promise.allSettled(links.map(({ health }) => health.tend()));
    await Promise.allSettled(links.map(({ sequences }) => sequences.poolWorkers.tend()));
    await Promise.allSettled(links.map(({ sender }) => sender.resend()));
  }
}
