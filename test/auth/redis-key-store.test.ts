import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createKey, revokeKey } from "../../auth/key-changes.ts";
import { redisKeyStore } from "../../auth/redis-key-store.ts";
import type { Redis } from "../../redis/connection.ts";
import { eventually } from "../helpers/eventually.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";
import { opening } from "../redis/opening.ts";
import { anyPurpose, keyStoreCases } from "./key-store-cases.ts";

describe("redisKeyStore", () => {
  const connect = opening();
  let server: RedisServer;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    redis = await connect(server.url, "commands");
    await redis.flushall();
  });

  keyStoreCases(async () => redisKeyStore(redis));

  it("tells those who watch of every change, until they have seen enough", async () => {
    const subscriber = await connect(server.url, "subscriber");
    let changes = 0;
    const end = redisKeyStore(redis, subscriber).watch?.(() => changes++);
    const store = redisKeyStore(redis);
    // The subscription is on its way.
    await eventually(async () => {
      await createKey(store, anyPurpose, 0);
      expect(changes).toBeGreaterThan(0);
    });
    const { key } = await createKey(store, anyPurpose, 0);
    const before = changes;
    await revokeKey(store, key.id);
    await eventually(() => expect(changes).toBeGreaterThan(before));
    end?.();
    expect(subscriber.listenerCount("message")).toBe(0);
  });

  it("has another version after it was emptied and filled anew", async () => {
    const store = redisKeyStore(redis);
    await createKey(store, anyPurpose, 0);
    const version = await store.version();
    await redis.flushall();
    expect(await store.version()).not.toBe(version);
    await createKey(store, anyPurpose, 0);
    expect(await store.version()).not.toBe(version);
  });

  it("refuses one key too many", async () => {
    const store = redisKeyStore(redis);
    const { record } = await createKey(store, anyPurpose, 0);
    const many = Array.from({ length: 10_000 }, (_, at) => [
      at.toString(16).padStart(12, "0"),
      JSON.stringify(record),
    ]);
    await redis.hset("tidepool:api-keys", Object.fromEntries(many));
    await expect(createKey(store, anyPurpose, 0)).rejects.toThrow("given 10000 already");
  });
});
