import { once } from "node:events";
import { connect as dial, createServer, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { RedisTier } from "../../cache/redis-tier.ts";
import { connect, type Redis } from "../../redis/connection.ts";
import { eventually } from "../helpers/eventually.ts";
import { type RedisCluster, startRedisCluster } from "../helpers/redis-cluster.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";
import { SilentLog } from "../helpers/silent-log.ts";
import { responseOf } from "./responses.ts";

const key = "k".repeat(43);
const parameters = new Map<string, bigint | boolean | number | string>([
  ["integer", 2n ** 63n],
  ["infinite", Infinity],
  ["text", "é"],
  ["flag", true],
]);

let redis: RedisServer;
let commands: Redis;
beforeAll(async () => {
  redis = await startRedis({ extra: ["--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"] });
  commands = await connect(redis.url, "commands");
});
afterAll(async () => {
  commands.disconnect();
  await redis.stop();
});

const open: RedisTier[] = [];
afterEach(async () => {
  for (const tier of open.splice(0)) tier.close();
  await commands.flushall().catch(() => {});
});

function tierOf(url: string, ttlMilliseconds = 60_000): RedisTier {
  const tier = new RedisTier({ url, ttlMilliseconds, log: new SilentLog() });
  open.push(tier);
  return tier;
}

/** Keeps an answer until it is there, because a tier connects when it can. */
async function keep(tier: RedisTier, response = responseOf("m", 10, parameters)): Promise<void> {
  await eventually(async () => {
    tier.set(key, response);
    expect(await tier.get(response.modelName, key)).toBeDefined();
  });
}

describe("RedisTier", () => {
  it("gives an answer to another server as it was", async () => {
    const [one, other] = [tierOf(redis.url), tierOf(redis.url)];
    const response = responseOf("m", 10, parameters);
    await keep(one, response);
    await eventually(async () => {
      expect((await other.get("m", key))?.response).toEqual(response);
    });
    expect(await other.get("m", key.replaceAll("k", "j"))).toBeUndefined();
  });

  it("keeps an answer only for its time", async () => {
    await keep(tierOf(redis.url, 5000));
    const [name = ""] = await commands.keys("*");
    expect(await commands.pttl(name)).toBeGreaterThan(0);
    expect(await commands.pttl(name)).toBeLessThanOrEqual(5000);
  });

  it("forgets one model's answers, whatever the model is called", async () => {
    const tier = tierOf(redis.url);
    await keep(tier);
    await keep(tier, responseOf("m*[?", 10));
    await commands.set("m*[?", "somebody else's");
    await tier.flush("m*[?");
    expect(await tier.get("m*[?", key)).toBeUndefined();
    expect(await tier.get("m", key)).toBeDefined();
    expect(await commands.get("m*[?")).toBe("somebody else's");
  });

  it("finds nothing in what it cannot read, and goes on", async () => {
    const tier = tierOf(redis.url);
    await keep(tier);
    const [name = ""] = await commands.keys("*");
    const frame = await commands.getBuffer(name);
    for (const broken of ["", "x", "\u0001\u0000\u0000\u0000", frame?.subarray(0, -1) ?? ""]) {
      await commands.set(name, broken);
      expect(await tier.get("m", key)).toBeUndefined();
    }
    await commands.set(name, frame ?? "");
    expect(await tier.get("m", key)).toBeDefined();
  });

  it("does not keep what is too large for its way", async () => {
    const tier = tierOf(redis.url);
    await keep(tier);
    tier.set("l".repeat(43), responseOf("m", 17 * 1024 * 1024));
    await keep(tier);
    expect(await commands.dbsize()).toBe(1);
  });

  it("is empty while its Redis is away, and works when it comes back", async () => {
    const own = await startRedis();
    const tier = tierOf(own.url);
    await keep(tier);
    await own.kill();
    expect(await tier.get("m", key)).toBeUndefined();
    tier.set(key, responseOf("m", 10));
    await expect(tier.flush("m")).rejects.toThrow(/./u);
    await own.restart();
    await keep(tier);
    await own.stop();
  });

  it("starts without a Redis, and connects when there is one", async () => {
    const own = await startRedis();
    await own.kill();
    const tier = tierOf(own.url);
    expect(await tier.get("m", key)).toBeUndefined();
    await expect(tier.flush("m")).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await own.restart();
    await keep(tier);
    await own.stop();
  });

  it("waits a short time for a Redis that does not answer, and then not at all for a while", async () => {
    const stuck = await startStuckProxy(redis.port);
    const tier = tierOf(`redis://127.0.0.1:${stuck.port}`);
    await keep(tier);
    stuck.hold();
    const began = performance.now();
    expect(await tier.get("m", key)).toBeUndefined();
    const first = performance.now() - began;
    expect(first).toBeGreaterThan(90);
    expect(first).toBeLessThan(1500);
    // Of so many lookups nearly all would wait.
    const again = performance.now();
    for (let i = 0; i < 50; i++) expect(await tier.get("m", key)).toBeUndefined();
    expect(performance.now() - again).toBeLessThan(2500);
    await stuck.stop();
  });
});

describe("RedisTier in a Redis Cluster", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(() => cluster.stop());

  it("keeps and forgets answers wherever their keys lie", async () => {
    const tier = tierOf(cluster.url);
    await keep(tier);
    const keys = Array.from({ length: 50 }, (_, i) => String(i).padEnd(43, "x"));
    for (const one of keys) tier.set(one, responseOf("m", 10));
    await eventually(async () => {
      const found = await Promise.all(keys.map((one) => tier.get("m", one)));
      expect(found.every(Boolean)).toBe(true);
    });
    await tier.flush("m");
    const left = await Promise.all(keys.map((one) => tier.get("m", one)));
    expect(left.filter(Boolean)).toEqual([]);
  });
});

interface StuckProxy {
  readonly port: number;
  /** From now on nothing comes back. */
  hold(): void;
  stop(): Promise<void>;
}

/** Hands bytes on to a port of this machine, until it is told to hold them back. */
async function startStuckProxy(to: number): Promise<StuckProxy> {
  const sockets = new Set<Socket>();
  let held = false;
  const server = createServer((near) => {
    const far = dial(to, "127.0.0.1");
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => {});
    }
    near.on("data", (bytes) => far.write(bytes));
    far.on("data", (bytes) => void (held || near.write(bytes)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address ? address.port : 0,
    hold: () => void (held = true),
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
