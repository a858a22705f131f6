import { checkRedis, requireQueueRedis } from "../redis/checks.ts";
import { connect, type Redis } from "../redis/connection.ts";
import type { RedisConnections } from "../redis/connections.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Settings } from "./settings.ts";

/** Connects to the Redis of the queues; rejects when it cannot be reached, or cannot be trusted with them. */
export async function connectRedis(settings: Settings, log: Logger): Promise<RedisConnections> {
  const redisUrl = redisUrlOf(settings);
  const outages = {
    onAway: (text: string) => log.error(text),
    onBack: (text: string) => log.info(text),
  };
  const open: Redis[] = [];
  const keep = (redis: Redis): Redis => {
    open.push(redis);
    return redis;
  };
  try {
    const [commands, blocking, subscriber] = await Promise.all([
      connect(redisUrl, "commands", outages).then(keep),
      connect(redisUrl, "blocking").then(keep),
      connect(redisUrl, "subscriber").then(keep),
    ]);
    requireQueueRedis(await checkRedis(commands));
    return { commands, blocking, subscriber };
  } catch (error) {
    for (const redis of open) redis.disconnect();
    throw error;
  }
}

/** The Redis of the queues. */
export function redisUrlOf({ redisUrl = "redis://127.0.0.1:6379" }: Settings): string {
  return redisUrl;
}

export function disconnectRedis({ commands, blocking, subscriber }: RedisConnections): void {
  for (const redis of [commands, blocking, subscriber]) redis.disconnect();
}
