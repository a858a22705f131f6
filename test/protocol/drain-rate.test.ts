import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DrainRate } from "../../protocol/drain-rate.ts";

describe("DrainRate", () => {
  it("finds a steady rate, whenever it is asked", () => {
    const perSecond = fc.integer({ min: 1, max: 500 });
    fc.assert(
      fc.property(perSecond, fc.integer({ min: 2, max: 60 }), (rate, seconds) => {
        const drain = new DrainRate();
        const step = 1000 / rate;
        for (let now = 1; now < seconds * 1000; now += step) drain.count(now);
        const found = drain.perSecond(seconds * 1000);
        expect(found).toBeGreaterThan(rate * 0.7 - 1);
        expect(found).toBeLessThan(rate * 1.3 + 1);
      }),
    );
  });

  it("is nothing before anything has gone, and when nothing has gone for ten seconds", () => {
    const drain = new DrainRate();
    expect(drain.perSecond(5)).toBe(0);
    drain.count(1000, 30);
    expect(drain.perSecond(2000)).toBe(30);
    expect(drain.perSecond(9000)).toBeGreaterThan(0);
    expect(drain.perSecond(11_000)).toBe(0);
  });

  it("follows a rate that changes", () => {
    const drain = new DrainRate();
    for (let now = 0; now < 20_000; now += 10) drain.count(now);
    for (let now = 20_000; now < 30_000; now += 1000) drain.count(now);
    expect(drain.perSecond(30_000)).toBeLessThan(3);
  });
});
