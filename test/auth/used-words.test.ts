import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { wordsInMemory, wordsInRedis } from "../../auth/used-words.ts";
import { connect, type Redis } from "../../redis/connection.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";

describe("wordsInMemory", () => {
  it("takes each word once for as long as it may be used, and forgets it in twice the time", async () => {
    let now = 0;
    const used = wordsInMemory(100, () => now);
    for (let i = 0; i < 50; i++) {
      now = i * 10;
      expect(await used.use(String(i))).toBe(true);
      for (let other = Math.max(0, i - 10); other <= i; other++) {
        expect(await used.use(String(other))).toBe(false);
      }
    }
    now += 200;
    expect(await used.use("49")).toBe(true);
  });

  it("takes no more than it can remember", () => {
    const used = wordsInMemory(100, () => 0);
    for (let i = 0; i < 500_000; i++) void used.use(String(i));
    expect(() => used.use("one more")).toThrow("given 500000 within the time");
  });
});

describe("wordsInRedis", () => {
  let redis: RedisServer;
  let commands: Redis;
  beforeAll(async () => {
    redis = await startRedis();
    commands = await connect(redis.url, "commands");
  });
  afterAll(async () => {
    commands.disconnect();
    await redis.stop();
  });

  it("takes each word once, whichever gateway is asked, and forgets it in time", async () => {
    const [one, other] = [wordsInRedis(commands, 60_000), wordsInRedis(commands, 60_000)];
    expect(await one.use("a")).toBe(true);
    expect(await other.use("a")).toBe(false);
    expect(await other.use("b")).toBe(true);
    const left = await commands.pttl("tidepool:edge-words:a");
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(60_000);
  });

  it("lets nobody in while Redis is away", async () => {
    await redis.stop();
    await expect(wordsInRedis(commands, 60_000).use("c")).rejects.toMatchObject({
      code: "UNAVAILABLE",
    });
  });
});
