import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { aDay, Allowance, aSecond } from "../../../auth/limits/allowance.ts";
import { takeAll } from "../../../auth/limits/claim.ts";
import { memoryPoints, type Points } from "../../../auth/limits/points.ts";

beforeEach(() => vi.useFakeTimers({ now: Date.UTC(2026, 10, 21, 23, 59, 50) }));
afterEach(() => vi.useRealTimers());

/** When something was let through, and how much of it. */
interface Taken {
  readonly at: number;
  readonly count: number;
}

/** Points that answer after a while, as another process does. */
function distant(points: Points, milliseconds: () => number): Points {
  return {
    async lease(key, wanted, window) {
      await new Promise((resolve) => setTimeout(resolve, milliseconds()));
      const lease = await points.lease(key, wanted, window);
      await new Promise((resolve) => setTimeout(resolve, milliseconds()));
      return lease;
    },
    forget: (key) => points.forget(key),
  };
}

/** The most that was taken in any stretch of a second. */
function mostInASecond(taken: readonly Taken[]): number {
  const sums = taken.map(({ at }) =>
    taken
      .filter((one) => one.at >= at && one.at < at + 1000)
      .reduce((sum, { count }) => sum + count, 0),
  );
  return Math.max(0, ...sums);
}

const arrivals = fc.array(
  fc.record({
    after: fc.integer({ min: 0, max: 400 }),
    gateway: fc.integer({ min: 0, max: 2 }),
    count: fc.integer({ min: 1, max: 6 }),
  }),
  { minLength: 10, maxLength: 120 },
);

describe("Allowance", () => {
  it("lets through no more than two windows hold in any second, however many processes share it", async () => {
    const limits = fc.integer({ min: 1, max: 40 });
    await fc.assert(
      fc.asyncProperty(
        arrivals,
        limits,
        fc.integer({ min: 0, max: 20 }),
        async (calls, limit, latency) => {
          const points = distant(memoryPoints(), () => latency);
          const made = [0, 1, 2].map(
            () => new Allowance(limit, aSecond(Date.now), points, "key:a"),
          );
          const taken: Taken[] = [];
          const all: Promise<void>[] = [];
          for (const { after, gateway, count } of calls) {
            await vi.advanceTimersByTimeAsync(after);
            const allowance = made[gateway];
            if (!allowance) throw new Error("no such gateway");
            const take = async (): Promise<void> => {
              if (!(await takeAll([allowance], count))) taken.push({ at: Date.now(), count });
            };
            all.push(take());
          }
          await vi.advanceTimersByTimeAsync(2000);
          await Promise.all(all);
          expect(mostInASecond(taken)).toBeLessThanOrEqual(2 * limit);
          // Over a longer time it is the limit, and one window more.
          const began = taken[0]?.at ?? 0;
          const seconds = ((taken.at(-1)?.at ?? 0) - began) / 1000;
          const sum = taken.reduce((total, { count }) => total + count, 0);
          expect(sum).toBeLessThanOrEqual(limit * (Math.ceil(seconds) + 1));
        },
      ),
      { numRuns: 150 },
    );
  });

  it("lets one process have all of a window, and no more until the next begins", async () => {
    const allowance = new Allowance(50, aSecond(Date.now), memoryPoints(), "key:a");
    const take = async (): Promise<boolean> => (await takeAll([allowance], 1)) === undefined;
    const first = await Promise.all(Array.from({ length: 80 }, () => take()));
    expect(first.filter(Boolean)).toHaveLength(50);
    expect(allowance.left).toBe(0);
    expect(allowance.secondsLeft).toBeLessThanOrEqual(1);
    vi.advanceTimersByTime(999);
    expect(await take()).toBe(false);
    vi.advanceTimersByTime(1);
    expect(allowance.left).toBe(50);
    expect(await take()).toBe(true);
  });

  it("asks others only once for many calls", async () => {
    const points = memoryPoints();
    const lease = vi.spyOn(points, "lease");
    const allowance = new Allowance(1000, aSecond(Date.now), points, "key:a");
    for (let i = 0; i < 500; i++) expect(await takeAll([allowance], 1)).toBeUndefined();
    expect(lease.mock.calls.length).toBe(10);
  });

  it("asks nobody again while a window is used up", async () => {
    const points = memoryPoints();
    const lease = vi.spyOn(points, "lease");
    const allowance = new Allowance(4, aSecond(Date.now), points, "key:a");
    for (let i = 0; i < 20; i++) await takeAll([allowance], 1);
    expect(lease.mock.calls.length).toBe(5);
  });

  it("serves who wants little when there is not enough for who wants much", async () => {
    const allowance = new Allowance(10, aSecond(Date.now), memoryPoints(), "key:a");
    expect(await takeAll([allowance], 4)).toBeUndefined();
    expect(await takeAll([allowance], 7)).toBe(allowance);
    expect(await takeAll([allowance], 6)).toBeUndefined();
    expect(await takeAll([allowance], 11)).toBe(allowance);
  });

  it("begins a day at midnight in UTC, with all of it", async () => {
    const points = memoryPoints();
    const [one, other] = [1, 2].map(() => new Allowance(2000, aDay(Date.now), points, "tenant:b"));
    if (!one || !other) throw new Error("two were made");
    expect(await takeAll([one], 1990)).toBeUndefined();
    expect(await takeAll([other], 11)).toBe(other);
    expect(one.secondsLeft).toBe(10);
    vi.advanceTimersByTime(9999);
    expect(await takeAll([other], 11)).toBe(other);
    vi.advanceTimersByTime(1);
    expect(one.left).toBe(2000);
    expect(await takeAll([other], 1000)).toBeUndefined();
    expect(await takeAll([one], 1000)).toBeUndefined();
    expect(await takeAll([one], 1)).toBe(one);
    expect(one.secondsLeft).toBe(86_400);
  });

  it("loses to a process that ends no more than a part of a day", async () => {
    const points = memoryPoints();
    expect(
      await takeAll([new Allowance(10_000, aDay(Date.now), points, "key:a")], 1),
    ).toBeUndefined();
    const next = new Allowance(10_000, aDay(Date.now), points, "key:a");
    expect(await takeAll([next], 9990)).toBeUndefined();
    expect(await takeAll([next], 1)).toBe(next);
  });
});

describe("takeAll", () => {
  it("takes nothing of what there is when there is not enough of another", async () => {
    const points = memoryPoints();
    const wide = new Allowance(100, aSecond(Date.now), points, "key:wide");
    const narrow = new Allowance(3, aSecond(Date.now), points, "key:narrow");
    for (let i = 0; i < 5; i++) await takeAll([wide, narrow], 1);
    expect([wide.left, narrow.left]).toEqual([97, 0]);
    expect(await takeAll([wide, narrow], 1)).toBe(narrow);
    expect(wide.left).toBe(97);
  });
});
