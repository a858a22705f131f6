import { afterAll, afterEach, beforeAll, beforeEach, type TestContext } from "vitest";
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

/** A stand on a Redis of the test's own, for tests that run at the same time; both are closed when it has ended. */
export async function openStand({ onTestFinished }: TestContext): Promise<QueueStand> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const stand = await QueueStand.open(redis.url);
  onTestFinished(() => stand.close());
  return stand;
}
