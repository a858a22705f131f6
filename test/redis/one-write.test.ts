import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Redis } from "ioredis";
import { connect } from "../../redis/connection.ts";
import { inOneWrite } from "../../redis/one-write.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";

describe("inOneWrite", () => {
  let server: RedisServer;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis();
    const connected = await connect(server.url, "commands");
    if (!(connected instanceof Redis)) throw new TypeError("expected a single server");
    redis = connected;
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  it("holds back what is sent, until the promises of the turn have gone on", async () => {
    const { stream } = redis;
    inOneWrite(redis);
    const first = redis.rpush("list", "first");
    const later = afterAWhile().then(() => redis.rpush("list", "second"));
    expect(stream.writableLength).toBeGreaterThan(0);
    const held = stream.writableLength;
    await afterAWhile();
    await afterAWhile();
    expect(stream.writableLength).toBeGreaterThan(held);
    expect(await Promise.all([first, later])).toEqual([1, 2]);
    expect(await redis.lrange("list", 0, -1)).toEqual(["first", "second"]);
    expect(stream.writableCorked).toBe(0);
  });

  it("may be asked for more than once", async () => {
    inOneWrite(redis);
    inOneWrite(redis);
    expect(await redis.ping()).toBe("PONG");
    expect(redis.stream.writableCorked).toBe(0);
    expect(await redis.ping()).toBe("PONG");
  });
});

/** A few promises later, in the same turn. */
async function afterAWhile(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}
