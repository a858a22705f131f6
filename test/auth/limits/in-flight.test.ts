import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { takeAll } from "../../../auth/limits/claim.ts";
import { InFlight, type PermitPool } from "../../../auth/limits/in-flight.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** What Redis does, with answers that come in order after a while; it says when pleas come. */
class Table {
  readonly held = new Map<number, number>();
  readonly holders: InFlight[] = [];
  readonly #latency: number;

  constructor(latency: number) {
    this.#latency = latency;
  }

  poolOf(gateway: number): PermitPool {
    return {
      hold: async (holder, wanted) => {
        await this.#wait();
        this.held.delete(gateway);
        const others = [...this.held.values()].reduce((sum, count) => sum + count, 0);
        const mine = Math.max(0, Math.min(wanted, holder.limit - others));
        this.held.set(gateway, mine);
        await this.#wait();
        return mine;
      },
      plead: () => {
        void this.#wait().then(() =>
          this.holders.forEach((holder, at) => at !== gateway && void holder.yield()),
        );
      },
    };
  }

  #wait(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, this.#latency));
  }
}

const steps = fc.array(
  fc.record({
    after: fc.integer({ min: 0, max: 60 }),
    gateway: fc.integer({ min: 0, max: 2 }),
    what: fc.constantFrom("take", "take", "take", "release", "settle"),
  }),
  { minLength: 20, maxLength: 200 },
);

describe("InFlight", () => {
  it("never lets more through than the bound, however many processes share it", async () => {
    const limits = fc.integer({ min: 1, max: 20 });
    await fc.assert(
      fc.asyncProperty(
        steps,
        limits,
        fc.integer({ min: 0, max: 15 }),
        async (all, limit, latency) => {
          const table = new Table(latency);
          for (const gateway of [0, 1, 2]) {
            const pool = table.poolOf(gateway);
            table.holders.push(new InFlight({ limit, key: "key:a", pool, now: () => Date.now() }));
          }
          let most = 0;
          const takes: Promise<unknown>[] = [];
          const used = (): number => table.holders.reduce((sum, one) => sum + one.used, 0);
          for (const { after, gateway, what } of all) {
            await vi.advanceTimersByTimeAsync(after);
            const holder = table.holders[gateway];
            if (!holder) throw new Error("no such gateway");
            if (what === "take")
              takes.push(
                Promise.resolve(takeAll([holder], 1)).then(() => (most = Math.max(most, used()))),
              );
            if (what === "release" && holder.used > 0) holder.release();
            if (what === "settle") for (const one of table.holders) void one.settle(true);
            most = Math.max(most, used());
          }
          await vi.advanceTimersByTimeAsync(1000);
          await Promise.all(takes);
          expect(most).toBeLessThanOrEqual(limit);
          for (const holder of table.holders) while (holder.used > 0) holder.release();
          // All comes back to who wants it.
          const [first] = table.holders;
          if (!first) throw new Error("no gateway");
          const wanted = Promise.resolve(takeAll([first], 1));
          await vi.advanceTimersByTimeAsync(1000);
          expect(await wanted).toBeUndefined();
        },
      ),
      { numRuns: 200 },
    );
  });

  it("has all of its bound where there is only this process", () => {
    const flight = new InFlight({ limit: 3, key: "key:a", now: () => 0 });
    expect([1, 2, 3, 4].map(() => takeAll([flight], 1))).toEqual([
      undefined,
      undefined,
      undefined,
      flight,
    ]);
    flight.release();
    expect(takeAll([flight], 1)).toBeUndefined();
    expect(flight.left).toBe(0);
  });

  it("tells how many ended in a second", () => {
    let now = 0;
    const flight = new InFlight({ limit: 1000, key: "key:a", now: () => now });
    for (let i = 0; i < 40; i++) {
      flight.spend(1);
      now += 100;
      flight.release();
    }
    expect(flight.drainedPerSecond).toBeCloseTo(10, 0);
  });

  it("has nothing left where others have all of it", async () => {
    const table = new Table(1);
    const [all, none] = [0, 1].map((gateway) => {
      const pool = table.poolOf(gateway);
      return new InFlight({ limit: 2, key: "key:a", pool, now: () => Date.now() });
    });
    if (!all || !none) throw new Error("no gateway");
    table.holders.push(all, none);
    const taken = Promise.resolve(takeAll([all], 2));
    await vi.advanceTimersByTimeAsync(10);
    expect(await taken).toBeUndefined();
    const refused = Promise.resolve(takeAll([none], 1));
    await vi.advanceTimersByTimeAsync(100);
    expect(await refused).toBe(none);
    expect([all.left, none.left]).toEqual([0, 0]);
  });

  it("gives a sequential client its place at whatever process it asks", async () => {
    const table = new Table(1);
    for (const gateway of [0, 1, 2]) {
      const pool = table.poolOf(gateway);
      table.holders.push(new InFlight({ limit: 1, key: "key:a", pool, now: () => Date.now() }));
    }
    for (let i = 0; i < 30; i++) {
      const holder = table.holders[i % 3];
      if (!holder) throw new Error("no such gateway");
      const taken = Promise.resolve(takeAll([holder], 1));
      await vi.advanceTimersByTimeAsync(10);
      expect(await taken).toBeUndefined();
      holder.release();
    }
  });
});
