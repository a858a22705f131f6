import type { Redis } from "../redis/connection.ts";
import { names } from "./names.ts";

/** What one gateway waits for in one pool. */
export interface GatewayDemand {
  /** Requests without their last answer, and versions that are to be started for the first time. */
  readonly requests: number;
  /** Since when it waits for anything; milliseconds since the epoch. */
  readonly since: number;
}

interface DatedDemand extends GatewayDemand {
  readonly at: number;
}

/** A gateway that has said nothing for so long is gone, and nobody waits for what it asked. */
const silentMilliseconds = 5000;

/**
 * How much a pool is wanted: the sum of what each gateway says of itself, and the durable requests that have not ended,
 * whose gateways may be gone. So every request counts once.
 */
export class Demand {
  readonly #key: string;
  readonly #jobsKey: string;
  readonly #commands: Redis;

  constructor(pool: string, commands: Redis) {
    this.#key = names.demand(pool);
    this.#jobsKey = names.unfinishedJobs(pool);
    this.#commands = commands;
  }

  async say(gateway: string, demand: GatewayDemand, now: number): Promise<void> {
    const dated: DatedDemand = { ...demand, at: now };
    if (demand.requests === 0) await this.#commands.hdel(this.#key, gateway);
    else await this.#commands.hset(this.#key, gateway, JSON.stringify(dated));
  }

  /** The sum over all gateways, and since when the first of them waits. @param now milliseconds since the epoch */
  async total(now: number): Promise<GatewayDemand> {
    const [texts, jobs] = await Promise.all([
      this.#commands.hgetall(this.#key),
      this.#unfinishedJobs(now),
    ]);
    const said = Object.entries(texts).map(([gateway, text]): [string, DatedDemand] => [
      gateway,
      JSON.parse(text),
    ]);
    const gone = said.filter(([, { at }]) => now - at > silentMilliseconds);
    if (gone.length > 0) await this.#commands.hdel(this.#key, ...gone.map(([gateway]) => gateway));
    const living = said.filter((one) => !gone.includes(one)).map(([, demand]) => demand);
    const waiting: readonly GatewayDemand[] = [jobs, ...living];
    const requests = waiting.reduce((sum, one) => sum + one.requests, 0);
    return { requests, since: Math.min(now, ...waiting.map(({ since }) => since)) };
  }

  async #unfinishedJobs(now: number): Promise<GatewayDemand> {
    const [requests, [, since]] = await Promise.all([
      this.#commands.zcard(this.#jobsKey),
      this.#commands.zrange(this.#jobsKey, "0", "0", "WITHSCORES"),
    ]);
    return { requests, since: since === undefined ? now : Number(since) };
  }
}
