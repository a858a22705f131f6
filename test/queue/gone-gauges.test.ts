import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StatisticsBoard } from "../../queue/statistics-board.ts";
import { connect, type Redis } from "../../redis/connection.ts";
import { ModelStatisticsRecorder } from "../../serving/model-statistics.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = await connect(server.url, "commands");
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

/** A process in which one request has failed and two wait. */
async function write(process: string): Promise<void> {
  const recorder = new ModelStatisticsRecorder({ name: "mlp", version: "1", tags: {} });
  recorder.failed("OTHER", 1);
  for (let i = 0; i < 2; i++) recorder.enqueued();
  const board = new StatisticsBoard("a", process, redis);
  board.changed("v", recorder);
  await board.flush();
}

async function seen(now: number): Promise<{ failed: number; pending: number }> {
  const others = await new StatisticsBoard("a", "gateway", redis).others("v", now);
  let [failed, pending] = [0, 0];
  for (const { observation } of others) {
    failed += observation.failures.OTHER;
    pending += observation.pending;
  }
  return { failed, pending };
}

describe("StatisticsBoard", () => {
  it("forgets what waited in a process that is gone, and nothing that it counted", async () => {
    const processes = Array.from({ length: 9 }, (_, i) => `worker-${i}`);
    await Promise.all(processes.map(write));
    expect(await seen(Date.now())).toEqual({ failed: 9, pending: 18 });
    expect(await seen(Date.now() + 10_000)).toEqual({ failed: 9, pending: 0 });

    await new StatisticsBoard("a", "gateway", redis).foldGone("v", Date.now(), () =>
      Promise.resolve(false),
    );
    expect(await seen(Date.now())).toEqual({ failed: 9, pending: 0 });
  });
});
