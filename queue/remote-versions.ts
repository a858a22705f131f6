import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { RedisConnections } from "../redis/connections.ts";
import type { Clock } from "../serving/clock.ts";
import type { RunningVersion, VersionSource } from "../serving/running-version.ts";
import { gatewayLeaseMilliseconds } from "./living-gateways.ts";
import { names } from "./names.ts";
import { openPoolLink, type PoolLink } from "./pool-link.ts";
import { ReplyReader } from "./reply-reader.ts";
import { remoteVersion } from "./remote-version.ts";
import { ticketOf, versionKey } from "./version-ticket.ts";

export interface RemoteVersionsOptions {
  /** Unlike that of any other gateway, before and after. */
  readonly gateway: string;
  readonly pools: readonly string[];
  /** The pool that serves a model. */
  readonly poolOf: (model: string) => string | undefined;
  readonly redis: RedisConnections;
  readonly clock: Clock;
}

const sayMilliseconds = 500;
/** After Redis was away, replies that were written meanwhile are read before anything is sent again. */
const settleMilliseconds = 500;

/** A gateway's side of the queue: starts versions whose requests pool workers run, wherever they are. */
export class RemoteVersions {
  readonly #options: RemoteVersionsOptions;
  readonly #links: ReadonlyMap<string, PoolLink>;
  readonly #reader: ReplyReader;
  readonly #timer: NodeJS.Timeout;
  #leaving = false;

  private constructor(options: RemoteVersionsOptions, links: readonly PoolLink[]) {
    this.#options = options;
    this.#links = new Map(links.map((link) => [link.pool, link]));
    this.#reader = new ReplyReader(options.gateway, options.redis, (reply) => {
      for (const link of links) link.sender.receive(reply);
    });
    this.#timer = setInterval(() => void this.#say(), sayMilliseconds);
    options.redis.commands.on("ready", () => {
      setTimeout(() => void this.#resend(), settleMilliseconds);
    });
  }

  static async open(options: RemoteVersionsOptions): Promise<RemoteVersions> {
    const { gateway, pools, redis, clock } = options;
    const { commands, subscriber } = redis;
    const links = await Promise.all(
      pools.map((pool) => openPoolLink({ pool, gateway, commands, subscriber, clock })),
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
    const link = this.#linkOf(source.name);
    const ticket = ticketOf(source, generation);
    const key = versionKey(ticket);
    const model = await link.openings.open(key, ticket, source);
    const { clock } = this.#options;
    return remoteVersion(key, model, { link, clock, leaving: () => this.#leaving });
  }

  /** This gateway is about to end: versions that it closes from now on go on to be served by others. */
  leave(): void {
    this.#leaving = true;
  }

  /** Once everything has been answered. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#reader.close();
    const { redis, gateway } = this.#options;
    await Promise.all(
      [...this.#links.values()].flatMap(({ board, meter }) => [board.flush(), meter.say()]),
    );
    await redis.commands.del(names.gateway(gateway)).catch(() => {});
    await Promise.all([...this.#links.values()].map((link) => link.close()));
  }

  #linkOf(model: string): PoolLink {
    const pool = this.#options.poolOf(model);
    const link = pool === undefined ? undefined : this.#links.get(pool);
    if (link) return link;
    throw new InferenceError(StatusCode.Unavailable, `no pool serves the model '${model}'`);
  }

  /** Tells the others that this gateway lives and what it waits for. What cannot be said now is said the next time. */
  async #say(): Promise<void> {
    const { redis, gateway } = this.#options;
    const links = [...this.#links.values()];
    await Promise.allSettled([
      redis.commands.set(names.gateway(gateway), "1", "PX", gatewayLeaseMilliseconds),
      ...links.map(({ meter }) => meter.say()),
      ...links.map(({ board }) => board.flush()),
    ]);
  }

  async #resend(): Promise<void> {
    await this.#say();
    for (const { sender } of this.#links.values()) await sender.resend().catch(() => {});
  }
}
