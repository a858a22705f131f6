import type { Observer } from "../autoscaler/observe.ts";
import { Demand } from "../queue/demand.ts";
import { PoolChannel } from "../queue/pool-channel.ts";
import { Presence } from "../queue/presence.ts";
import type { Redis } from "../redis/connection.ts";

/** Sees in Redis what gateways wait for, and which pool workers are there. */
export async function redisObserver(
  pools: readonly string[],
  commands: Redis,
  subscriber: Redis,
): Promise<Observer> {
  const channels = await Promise.all(
    pools.map(async (pool) => ({
      pool,
      channel: await PoolChannel.open(pool, commands, subscriber),
    })),
  );
  return {
    async observe(pool) {
      const now = Date.now();
      const [{ requests, since }, poolWorkers] = await Promise.all([
        new Demand(pool, commands).total(now),
        new Presence(pool, commands).present(now),
      ]);
      return {
        demand: requests,
        oldestAgeMilliseconds: requests > 0 ? now - since : 0,
        ...(requests > 0 && { demandSince: since }),
        poolWorkers,
      };
    },
    onDemand(listener) {
      const ends = channels.map(({ pool, channel }) => channel.on("demand", () => listener(pool)));
      return () => ends.forEach((end) => end());
    },
  };
}
