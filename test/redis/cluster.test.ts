import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkRedis, requireQueueRedis } from "../../redis/checks.ts";
import { Lease } from "../../redis/lease.ts";
import { eventually } from "../helpers/eventually.ts";
import { type RedisCluster, startRedisCluster } from "../helpers/redis-cluster.ts";
import { opening } from "./opening.ts";

describe("a Redis Cluster", () => {
  const connect = opening();
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster(["--cluster-require-full-coverage", "no"]);
  });
  afterAll(() => cluster.stop());

  it("takes a pipeline whose keys share a hash tag, bytes as they are", async () => {
    const redis = await connect(cluster.url, "commands");
    const bytes = Buffer.from([0, 255, 10]);
    await redis.pipeline().set("{queue}:a", bytes).rpush("{queue}:b", bytes, "x").exec();
    expect(await redis.getBuffer("{queue}:a")).toEqual(bytes);
    expect(await redis.lpopBuffer("{queue}:b", 9)).toEqual([bytes, Buffer.from("x")]);
  });

  it("is ready for every master as soon as it is connected", async () => {
    const redis = await connect(cluster.url, "commands");
    const keys = Array.from({ length: 30 }, (_, index) => `key${index}`);
    const answers = await Promise.all(keys.map((key) => redis.set(key, "value")));
    expect(new Set(answers)).toEqual(new Set(["OK"]));
  });

  it("is found through any one of its servers", async () => {
    const redis = await connect(`redis-cluster://127.0.0.1:${cluster.masters[2].port}`, "commands");
    expect(await redis.set("{queue}:a", "value")).toBe("OK");
  });

  it("blocks and publishes", async () => {
    const heard: string[] = [];
    const redis = await connect(cluster.url, "commands");
    const blocking = await connect(cluster.url, "blocking");
    const subscriber = await connect(cluster.url, "subscriber");
    subscriber.on("message", (_channel: string, message: string) => heard.push(message));
    await subscriber.subscribe("channel");
    const waiting = blocking.blpop("{queue}:waiting", 10);
    await redis.publish("channel", "hello");
    await redis.rpush("{queue}:waiting", "item");
    expect(await waiting).toEqual(["{queue}:waiting", "item"]);
    await eventually(() => expect(heard).toEqual(["hello"]));
  });

  it("holds a lease", async () => {
    const redis = await connect(cluster.url, "commands");
    const lease = new Lease({ redis, key: "{queue}:lease", lengthMilliseconds: 60_000 });
    await eventually(() => expect(lease.held).toBe(true));
    await lease.close();
    expect(await redis.exists("{queue}:lease")).toBe(0);
  });

  it("is checked master by master", async () => {
    const redis = await connect(cluster.url, "commands");
    expect(await checkRedis(redis)).toMatchObject({ evicts: false, durability: "none" });
    const last = await connect(cluster.masters[2].url, "commands");
    await last.config("SET", "maxmemory-policy", "allkeys-lru");
    const facts = await checkRedis(redis);
    await last.config("SET", "maxmemory-policy", "noeviction");
    expect(() => requireQueueRedis(facts)).toThrow("set maxmemory-policy to noeviction");
  });

  it("tells which master is away, while the others serve, and when it is back", async () => {
    const told: string[] = [];
    const tell = (text: string): unknown => told.push(text);
    const redis = await connect(cluster.url, "commands", { onAway: tell, onBack: tell });
    const [first] = cluster.masters;
    await first.kill();
    await eventually(async () => {
      await expect(redis.set(keyOfFirst, "value")).rejects.toBeInstanceOf(Error);
      expect(told).toHaveLength(1);
    });
    expect(told[0]).toMatch(`Redis at 127.0.0.1:${first.port} is away: `);
    expect(await redis.set(keyOfLast, "value")).toBe("OK");
    await first.restart();
    await eventually(async () => expect(await redis.set(keyOfFirst, "value")).toBe("OK"));
    await eventually(() => expect(told[1]).toBe(`Redis at 127.0.0.1:${first.port} is back`));
  });

  it("is heard through the next master when one is away", async () => {
    const heard: string[] = [];
    const subscriber = await connect(cluster.url, "subscriber");
    subscriber.on("message", (_channel: string, message: string) => heard.push(message));
    await subscriber.subscribe("channel");
    const [first, , last] = cluster.masters;
    await first.kill();
    const publisher = await connect(last.url, "commands");
    await eventually(async () => {
      await publisher.publish("channel", "hello");
      expect(heard).toContain("hello");
    });
    await first.restart();
  });

  it("comes back in all roles when all of it was away", async () => {
    const heard: string[] = [];
    const redis = await connect(cluster.url, "commands");
    const blocking = await connect(cluster.url, "blocking");
    const subscriber = await connect(cluster.url, "subscriber");
    subscriber.on("message", (_channel: string, message: string) => heard.push(message));
    await subscriber.subscribe("channel");
    await Promise.all(cluster.masters.map((master) => master.kill()));
    await expect(redis.set(keyOfFirst, "value")).rejects.toBeInstanceOf(Error);
    const waiting = blocking.blpop("{queue}:waiting", 10);
    await Promise.all(cluster.masters.map((master) => master.restart()));
    await eventually(async () => {
      await redis.publish("channel", "hello");
      expect(heard).toContain("hello");
    });
    await eventually(() => redis.rpush("{queue}:waiting", "item"));
    expect(await waiting).toEqual(["{queue}:waiting", "item"]);
  });
});

/** In slot 935 of 16,384. */
const keyOfFirst = "key3";
/** In slot 15,495. */
const keyOfLast = "a";
