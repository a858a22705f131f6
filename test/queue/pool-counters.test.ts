import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { PoolCounters } from "../../queue/pool-counters.ts";
import { connect, type Redis } from "../../redis/connection.ts";
import { countField } from "../../telemetry/pool-counts.ts";
import { eventually } from "../helpers/eventually.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis({ appendOnly: true });
  redis = await connect(server.url, "commands");
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

function waits(part: number | "sum"): string {
  return countField("queue_wait_seconds", ["mlp"], part);
}

describe("PoolCounters", () => {
  it("adds up what several pool workers count, those that are gone included", async () => {
    const [first, second] = [new PoolCounters("a", redis), new PoolCounters("a", redis)];
    first.add("queue_envelopes_total");
    first.observe("queue_wait_seconds", ["mlp"], 0.004);
    await first.flush();
    second.add("queue_envelopes_total", [], 2);
    second.observe("queue_wait_seconds", ["mlp"], 0.0045);
    second.observe("queue_wait_seconds", ["mlp"], 1000);
    await second.flush();
    const counts = await new PoolCounters("a", redis).read();
    expect(counts.get(countField("queue_envelopes_total", []))).toBe(3);
    expect(counts.get(waits(2))).toBe(2);
    // Beyond the last bound.
    expect(counts.get(waits(16))).toBe(1);
    expect(counts.get(waits("sum"))).toBeCloseTo(1000.0085);
    expect((await new PoolCounters("b", redis).read()).size).toBe(0);
  });

  it("adds everything once, however often it is written", async () => {
    const counters = new PoolCounters("a", redis);
    let hits = 3;
    counters.follow("model_cache_hits_total", () => hits);
    counters.add("queue_stalled_total");
    await counters.flush();
    await counters.flush();
    hits = 5;
    await counters.flush();
    const counts = await counters.read();
    expect(counts.get(countField("queue_stalled_total", []))).toBe(1);
    expect(counts.get(countField("model_cache_hits_total", []))).toBe(5);
  });

  it("keeps what it could not write until Redis is back", async () => {
    const counters = new PoolCounters("a", redis);
    await server.kill();
    counters.add("queue_envelopes_total");
    await counters.flush();
    await server.restart();
    await eventually(() => redis.ping());
    counters.add("queue_envelopes_total");
    await counters.flush();
    const counts = await counters.read();
    expect(counts.get(countField("queue_envelopes_total", []))).toBe(2);
  });
});
