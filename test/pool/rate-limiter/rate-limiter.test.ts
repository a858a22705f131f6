import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type LimitedSeat, RateLimiter } from "../../../pool/rate-limiter/rate-limiter.ts";
import type { ResourceNeed } from "../../../pool/rate-limiter/resources.ts";
import { FakeClock, turn } from "../../helpers/fake-clock.ts";

function need(name: string, count = 1): ResourceNeed {
  return { name, count, device: 0 };
}

/** One seat of its own. */
function seat(limiter: RateLimiter, needs: readonly ResourceNeed[], priority = 0): LimitedSeat {
  const [only] = limiter.register([{ needs, priority }]).seats;
  if (!only) throw new Error("no seat");
  return only;
}

/** Tasks that last until the test ends them. */
class Tasks {
  readonly begun: string[] = [];
  readonly #ends = new Map<string, () => void>();

  run(on: LimitedSeat, name: string): void {
    void on.run(() => {
      this.begun.push(name);
      return new Promise<void>((resolve) => this.#ends.set(name, resolve));
    });
  }

  async end(name: string): Promise<void> {
    this.#ends.get(name)?.();
    await turn();
    await turn();
  }
}

describe("RateLimiter", () => {
  it("runs a task when all that it needs is free", async () => {
    const limiter = new RateLimiter([]);
    const tasks = new Tasks();
    const [a, b, both] = [need("A"), need("B")]
      .map((one) => [one])
      .concat([[need("A"), need("B")]]);
    tasks.run(seat(limiter, a ?? []), "a");
    await turn();
    tasks.run(seat(limiter, both ?? []), "both");
    await turn();
    tasks.run(seat(limiter, b ?? []), "b");
    await turn();
    expect(tasks.begun).toEqual(["a"]);
    await tasks.end("a");
    expect(tasks.begun).toEqual(["a", "both"]);
    await tasks.end("both");
    expect(tasks.begun).toEqual(["a", "both", "b"]);
  });

  it("lets others by as long as enough is left for who waits", async () => {
    const limiter = new RateLimiter([{ name: "R", count: 4 }]);
    const tasks = new Tasks();
    tasks.run(seat(limiter, [need("R", 2), need("R2", 0)]), "first");
    await turn();
    tasks.run(seat(limiter, [need("R", 3)]), "large");
    tasks.run(seat(limiter, [need("R", 1)]), "small");
    tasks.run(seat(limiter, []), "none");
    await turn();
    expect(tasks.begun).toEqual(["first", "none"]);
    await tasks.end("first");
    expect(tasks.begun).toEqual(["first", "none", "large", "small"]);
  });

  it("weighs by priority how often who runs", async () => {
    const limiter = new RateLimiter([]);
    const clock = new FakeClock();
    const counts = new Map<number, number>();
    const keepRunning = async (one: LimitedSeat, priority: number): Promise<void> => {
      for (let i = 0; i < 1000; i++) {
        await one.run(() => new Promise<void>((resolve) => clock.after(1, resolve)));
        counts.set(priority, (counts.get(priority) ?? 0) + 1);
      }
    };
    for (const priority of [1, 2, 5])
      void keepRunning(seat(limiter, [need("R")], priority), priority);
    await turn();
    for (let i = 0; i < 170; i++) {
      await clock.advance(1);
      await turn();
    }
    const [one = 0, two = 0, five = 0] = [1, 2, 5].map((priority) => counts.get(priority));
    expect(one / two).toBeCloseTo(2, 0);
    expect(one / five).toBeCloseTo(5, 0);
    expect(one + two + five).toBeGreaterThan(160);
  });

  it("asks those that have just got free before it decides", async () => {
    const limiter = new RateLimiter([]);
    const tasks = new Tasks();
    const seats = limiter.register([{ needs: [need("R")], priority: 1 }]);
    const [busy] = seats.seats;
    if (!busy) throw new Error("no seat");
    const rare = seat(limiter, [need("R")], 10);
    tasks.run(rare, "rare");
    await turn();
    await tasks.end("rare");
    tasks.run(busy, "first");
    await turn();
    tasks.run(rare, "rare again");
    // As schedulers do: they hear of it and act at the end of the turn.
    seats.onFree(() => setImmediate(() => tasks.run(busy, "second")));
    await tasks.end("first");
    await turn();
    expect(tasks.begun).toEqual(["rare", "first", "second"]);
  });

  it("owes nothing to who had nothing to run", async () => {
    const limiter = new RateLimiter([]);
    const tasks = new Tasks();
    const old = seat(limiter, [need("R")]);
    for (let i = 0; i < 50; i++) {
      tasks.run(old, `${i}`);
      await turn();
      await tasks.end(`${i}`);
    }
    tasks.begun.length = 0;
    const late = seat(limiter, [need("R")]);
    for (const [on, name] of [
      [late, "l1"],
      [late, "l2"],
      [old, "o1"],
      [old, "o2"],
    ] as const)
      tasks.run(on, name);
    await turn();
    for (const name of ["l1", "o1", "l2", "o2"]) await tasks.end(name);
    expect(tasks.begun).toEqual(["l1", "o1", "l2", "o2"]);
  });

  it("lets go of what waits when its instances are removed", async () => {
    const limiter = new RateLimiter([]);
    const tasks = new Tasks();
    tasks.run(seat(limiter, [need("R")]), "running");
    const seats = limiter.register([{ needs: [need("R")], priority: 0 }]);
    await turn();
    const [gone] = seats.seats;
    if (gone) tasks.run(gone, "gone");
    await turn();
    expect(tasks.begun).toEqual(["running"]);
    seats.remove();
    await turn();
    expect(tasks.begun).toEqual(["running", "gone"]);
  });

  it("passes a failure on and gives back what the task held", async () => {
    const limiter = new RateLimiter([]);
    const one = seat(limiter, [need("R")]);
    await expect(one.run(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(one.free).toBe(true);
    await expect(one.run(() => Promise.resolve("yes"))).resolves.toBe("yes");
  });

  it("never lends more than there is, and lets nobody wait for ever", async () => {
    const needs = fc.record({ A: fc.nat(3), B: fc.nat(3), C: fc.nat(1) });
    const seats = fc.array(fc.tuple(needs, fc.nat(3)), { minLength: 1, maxLength: 6 });
    const longestTask = 3;
    await fc.assert(
      fc.asyncProperty(
        seats,
        fc.array(fc.integer({ min: 1, max: longestTask })),
        async (all, durations) => {
          const clock = new FakeClock();
          const limiter = new RateLimiter([]);
          const capacity = { A: 0, B: 0, C: 0 };
          const used = { A: 0, B: 0, C: 0 };
          for (const [{ A, B, C }] of all) {
            capacity.A = Math.max(capacity.A, A);
            capacity.B = Math.max(capacity.B, B);
            capacity.C = Math.max(capacity.C, C);
          }
          let longestWait = 0;
          let runs = 0;
          const run = async (one: LimitedSeat, held: typeof used): Promise<void> => {
            const asked = clock.now();
            await one.run(async () => {
              longestWait = Math.max(longestWait, clock.now() - asked);
              for (const name of ["A", "B", "C"] as const) {
                used[name] += held[name];
                expect(used[name]).toBeLessThanOrEqual(capacity[name]);
              }
              const duration = durations[runs++ % durations.length] ?? 1;
              await new Promise<void>((resolve) => clock.after(duration, resolve));
              for (const name of ["A", "B", "C"] as const) used[name] -= held[name];
            });
            if (runs < 600) await run(one, held);
          };
          const ended = all.map(([held, priority]) => {
            const wanted = Object.entries(held).map(([name, count]) => need(name, count));
            return run(seat(limiter, wanted, priority), held);
          });
          await turn();
          for (let i = 0; i < 2000 && clock.timers > 0; i++) {
            await clock.advance(1);
            await turn();
          }
          await Promise.all(ended);
          // Each other one goes before at most as often as its priority is worth, and twice more.
          expect(longestWait).toBeLessThanOrEqual(longestTask * 5 * all.length);
        },
      ),
      { numRuns: 40 },
    );
  }, 60_000);
});
