import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";
import { opening } from "./opening.ts";

let server: RedisServer;
const connect = opening();
beforeEach(async () => {
  server = await startRedis();
});
afterEach(() => server.stop());

describe("commands", () => {
  it("fail at once while Redis is away, and work when it is back", async () => {
    const redis = await connect(server.url, "commands");
    await server.kill();
    await expect(redis.set("key", "value")).rejects.toBeInstanceOf(Error);
    const results = await redis.pipeline().set("key", "value").exec();
    expect(results?.[0]?.[0]).toBeInstanceOf(Error);
    await server.restart();
    await eventually(async () => expect(await redis.set("key", "value")).toBe("OK"));
  });

  it("fail when their answer is lost, and are not sent again", async () => {
    const redis = await connect(server.url, "commands");
    const failure: Promise<unknown> = redis.blpop("list", 0).catch((error: unknown) => error);
    await eventually(async () => expect(await blockedClients()).toBe("1"));
    await server.kill();
    expect(await failure).toMatchObject({ name: "MaxRetriesPerRequestError" });
    await server.restart();
    await eventually(() => redis.ping());
    expect(await redis.info("commandstats")).not.toContain("cmdstat_blpop");
  });

  it("fail when Redis falls silent", async () => {
    const redis = await connect(server.url, "commands");
    server.process.kill("SIGSTOP");
    try {
      await expect(redis.ping()).rejects.toThrow("max retries per request");
    } finally {
      server.process.kill("SIGCONT");
    }
    await eventually(() => redis.ping());
  });
});

describe("blocking", () => {
  it("goes on waiting when Redis was away", async () => {
    const redis = await connect(server.url, "blocking");
    const waiting = redis.blpop("list", 10);
    await eventually(async () => expect(await blockedClients()).toBe("1"));
    await server.kill();
    const asked = redis.get("key");
    await server.restart();
    await eventually(async () => expect(await blockedClients()).toBe("1"));
    const other = await connect(server.url, "commands");
    await other.rpush("list", "item");
    expect(await waiting).toEqual(["list", "item"]);
    expect(await asked).toBeNull();
  });
});

describe("subscriber", () => {
  it("hears its channel again when Redis was away", async () => {
    const heard: string[] = [];
    const subscriber = await connect(server.url, "subscriber");
    subscriber.on("message", (_channel: string, message: string) => heard.push(message));
    await subscriber.subscribe("channel");
    await server.kill();
    await server.restart();
    const publisher = await connect(server.url, "commands");
    await eventually(async () => expect(await publisher.publish("channel", "hello")).toBe(1));
    await eventually(() => expect(heard).toEqual(["hello"]));
  });
});

async function blockedClients(): Promise<string | undefined> {
  const redis = await connect(server.url, "commands");
  const info = await redis.info("clients");
  redis.disconnect();
  return /^blocked_clients:(\d+)/mu.exec(info)?.[1];
}
