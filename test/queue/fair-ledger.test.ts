import * as fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { fairLedger } from "../../queue/fair-ledger.ts";
import { names } from "../../queue/names.ts";
import { connect, type Redis } from "../../redis/connection.ts";
import { MemoryLedger } from "../helpers/memory-ledger.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";

const pool = "pool";

describe("fairLedger", () => {
  let server: RedisServer;
  let commands: Redis;
  beforeAll(async () => {
    server = await startRedis();
    commands = await connect(server.url, "commands");
  });
  afterEach(() => commands.flushall());
  afterAll(async () => {
    commands.disconnect();
    await server.stop();
  });

  it("says what a plain map says, whoever tells what", async () => {
    const tenant = fc.constantFrom("a", "b", "c d:\u0000é", "0");
    const spent = fc.dictionary(tenant, fc.integer({ min: -5, max: 1000 }));
    const words = fc.array(fc.tuple(fc.nat({ max: 5000 }), spent), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(words, async (given) => {
        await commands.flushall();
        const [ledger, plain] = [fairLedger(pool, commands), new MemoryLedger()];
        for (const [now, items] of given) {
          const told = [now, 1500, new Map(Object.entries(items))] as const;
          expect(await ledger.exchange(...told)).toEqual(await plain.exchange(...told));
        }
      }),
      { numRuns: 50 },
    );
  });

  it("forgets tenants whose turn is over, and everything some day", async () => {
    const ledger = fairLedger(pool, commands);
    await ledger.exchange(0, 1000, new Map([["a", 10]]));
    await ledger.exchange(0, 1000, new Map([["b", 20]]));
    await ledger.exchange(15, 1000, new Map());
    expect(await commands.zrange(names.virtualFinishes(pool), "0", "-1")).toEqual(["b"]);
    for (const key of await commands.keys("*")) expect(await commands.pttl(key)).toBeGreaterThan(0);
  });

  it("knows large times to the item", async () => {
    const ledger = fairLedger(pool, commands);
    const now = 123_456_789_012_345;
    const page = await ledger.exchange(now, 1000, new Map([["a", 1]]));
    expect(page).toEqual({ now, base: now, finishes: new Map([["a", now + 1]]) });
    expect(await ledger.exchange(0, 1000, new Map([["a", 1]]))).toEqual({
      now,
      base: now,
      finishes: new Map([["a", now + 2]]),
    });
  });
});
