import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { anonymousCaller, type Caller } from "../../../auth/caller.ts";
import { CallerLimits, type LimitRules } from "../../../auth/limits/caller-limits.ts";
import { type Limits, noLimits } from "../../../auth/limits/limits.ts";
import { memoryPoints } from "../../../auth/limits/points.ts";
import { StatusCode } from "../../../protocol/error.ts";

beforeEach(() => vi.useFakeTimers({ now: Date.UTC(2026, 10, 21, 22) }));
afterEach(() => vi.useRealTimers());

const refusals: string[] = [];

function callerLimits(rules: Partial<LimitRules>): CallerLimits {
  refusals.length = 0;
  return new CallerLimits({
    rules: { eachKey: noLimits, eachTenant: noLimits, tenants: new Map(), ...rules },
    points: memoryPoints(),
    now: () => performance.now(),
    today: Date.now,
    onRefused: (reason, tenant) => refusals.push(`${reason} ${tenant}`),
  });
}

function holder(id: string, limits: Limits, tenant = "default"): Caller {
  return { ...anonymousCaller, name: `key:${id}`, title: id, tenant, limits };
}

describe("CallerLimits", () => {
  it("lets pass whom nothing bounds, without remembering them", () => {
    const limits = callerLimits({ eachKey: { inFlight: 1 } });
    expect(limits.enter(anonymousCaller)).toBeUndefined();
    expect(limits.size).toBe(0);
  });

  it("gives a key the limits that each key has where it has none of that name", async () => {
    const limits = callerLimits({ eachKey: { inFlight: 1, dailyItems: 5 } });
    const passage = await limits.enter(holder("a", { inFlight: 2 }));
    expect(passage?.quota().policy).toBe(
      '"key-in-flight";q=2;qu="concurrent-requests", "key-daily-items";q=5;qu="items";w=86400',
    );
  });

  it("counts no items of a request that one of several limits refuses", async () => {
    const limits = callerLimits({ tenants: new Map([["blue", { itemsPerSecond: 3 }]]) });
    const passage = await limits.enter(holder("a", { dailyItems: 10 }, "blue"));
    await passage?.charge(2);
    const refused = async (): Promise<void> => passage?.charge(2);
    await expect(refused()).rejects.toMatchObject({
      code: StatusCode.ResourceExhausted,
      message: "items a second of tenant 'blue': given 2 more, expected at most 3",
      retryAfterSeconds: 1,
    });
    expect(passage?.quota().left).toMatch(
      /^"key-daily-items";r=8;t=7200, "tenant-items";r=1;t=1$/u,
    );
    expect(refusals).toEqual(["tenant-items blue"]);
  });

  it("says of a day's items when the day ends", async () => {
    const limits = callerLimits({});
    const passage = await limits.enter(holder("a", { dailyItems: 1 }));
    await passage?.charge(1);
    await expect(async () => passage?.charge(1)).rejects.toMatchObject({ retryAfterSeconds: 7200 });
  });

  it("gives a place back that a call has left", async () => {
    const limits = callerLimits({});
    const caller = holder("a", { inFlight: 1 });
    const passage = await limits.enter(caller);
    expect(() => limits.enter(caller)).toThrow("requests in flight of key 'a'");
    passage?.release();
    await limits.enter(caller);
  });

  it("keeps count for a key whose record was read anew", async () => {
    const limits = callerLimits({});
    const first = await limits.enter(holder("a", { inFlight: 1, dailyItems: 2 }));
    expect(() => limits.enter(holder("a", { inFlight: 1, dailyItems: 2 }))).toThrow("in flight");
    await first?.charge(2);
    first?.release();
    const next = await limits.enter(holder("a", { inFlight: 1, dailyItems: 2 }));
    expect(next?.quota().left).toContain('"key-daily-items";r=0');
  });

  it("remembers so many at most, and none less that has calls under way", async () => {
    const limits = callerLimits({ eachTenant: { inFlight: 1 } });
    const busy = { ...anonymousCaller, tenant: "busy" };
    const passage = await limits.enter(busy);
    for (let i = 0; i < 50_000; i++) {
      const one = limits.enter({ ...anonymousCaller, tenant: `t${i}` });
      if (!(one instanceof Promise)) one?.release();
    }
    expect(limits.size).toBeLessThanOrEqual(20_000);
    expect(() => limits.enter(busy)).toThrow("requests in flight of tenant 'busy'");
    passage?.release();
    await limits.enter(busy);
  });
});
