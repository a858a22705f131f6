import { afterEach, describe, expect, it } from "vitest";
import { checkRedis, readFacts, requireQueueRedis } from "../../redis/checks.ts";
import { type RedisServer, type RedisServerOptions, startRedis } from "../helpers/redis-server.ts";
import { opening } from "./opening.ts";

const connect = opening();
let server: RedisServer;
afterEach(() => server?.stop());

async function factsOf(
  options: RedisServerOptions,
  credentials = "",
): ReturnType<typeof checkRedis> {
  server = await startRedis(options);
  return checkRedis(await connect(server.url.replace("//", `//${credentials}`), "commands"));
}

describe("checkRedis", () => {
  it("accepts a Redis as it is made", async () => {
    const facts = await factsOf({});
    expect(facts).toMatchObject({ evicts: false, durability: "none", waitAof: false });
    expect(facts.version).toMatch(/^\d+\.\d+\.\d+$/u);
    expect(() => requireQueueRedis(facts)).not.toThrow();
  });

  it.each(["always", "everysec"])("sees that changes are written to disk: %s", async (fsync) => {
    const extra = ["--appendfsync", fsync];
    expect((await factsOf({ appendOnly: true, extra })).durability).toBe(fsync);
  });

  it("does not count on a disk that the system writes when it likes", async () => {
    const extra = ["--appendfsync", "no"];
    expect((await factsOf({ appendOnly: true, extra })).durability).toBe("none");
  });

  it("works where CONFIG is forbidden, and knows less", async () => {
    const user = ["--user", "guest", "on", ">pass", "~*", "&*", "+@all", "-config"];
    const policy = ["--maxmemory-policy", "allkeys-lru"];
    const facts = await factsOf({ appendOnly: true, extra: [...user, ...policy] }, "guest:pass@");
    expect(facts).toMatchObject({ evicts: true, durability: "unknown" });
  });
});

describe("requireQueueRedis", () => {
  it.each(["allkeys-lru", "volatile-ttl"])("refuses the eviction policy %s", async (policy) => {
    const facts = await factsOf({ extra: ["--maxmemory-policy", policy] });
    expect(() => requireQueueRedis(facts)).toThrow("set maxmemory-policy to noeviction");
  });

  it.each(["6.0.16", "5.0.3"])("refuses version %s", (version) => {
    const facts = readFacts(`redis_version:${version}\r\n`, undefined);
    expect(() => requireQueueRedis(facts)).toThrow(
      `its version is ${version}, expected 6.2 or newer`,
    );
  });

  it.each(["6.2.0", "6.10.1", "7.0.15", "10.0.0"])("accepts version %s", (version) => {
    const facts = readFacts(`redis_version:${version}\r\n`, undefined);
    expect(() => requireQueueRedis(facts)).not.toThrow();
  });
});

describe("readFacts", () => {
  it.each([
    ["7.2.4", "1", true],
    ["8.0.2", "1", true],
    ["7.0.15", "1", false],
    ["7.2.4", "0", false],
  ])("knows whether %s with appendonly %s has WAITAOF: %s", (version, appendOnly, waitAof) => {
    const info = `# Server\r\nredis_version:${version}\r\naof_enabled:${appendOnly}\r\n`;
    expect(readFacts(info, "always").waitAof).toBe(waitAof);
  });
});
