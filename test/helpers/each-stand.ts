import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { QueueStand } from "./queue-stand.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";

/**
 * A Redis for all tests of the surrounding block, and a stand on it for each of them, which is closed after it.
 *
 * @param use is given the stand before each test
 */
export function eachStand(use: (stand: QueueStand) => void | Promise<void>): void {
  let redis: RedisServer;
  let stand: QueueStand;
  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(async () => {
    stand = await QueueStand.open(redis.url);
    await use(stand);
  });
  afterEach(() => stand.close());
  afterAll(() => redis.stop());
}
