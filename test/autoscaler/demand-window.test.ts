import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { averageDemand, withSample, type DemandSample } from "../../autoscaler/demand-window.ts";

const window = 60_000;

function samplesOf(steps: readonly (readonly [pause: number, demand: number])[]) {
  let at = 1_000_000;
  let samples: readonly DemandSample[] = [];
  for (const [pause, demand] of steps) {
    at += pause;
    samples = withSample(samples, { at, demand }, window);
  }
  return { samples, now: at };
}

const someSteps = fc.array(
  fc.tuple(fc.integer({ min: 0, max: 20_000 }), fc.integer({ min: 0, max: 1000 })),
  { minLength: 1, maxLength: 300 },
);

describe("averageDemand", () => {
  it("weighs each demand by the time since the one before", () => {
    const { samples, now } = samplesOf([
      [0, 5],
      [3000, 10],
      [1000, 50],
    ]);
    expect(averageDemand(samples, now, window)).toBe((3 * 10 + 50) / 4);
  });

  it("forgets what lies before the window", () => {
    const { samples, now } = samplesOf([
      [0, 0],
      [50_000, 100],
      [2000, 7],
      [4000, 1],
    ]);
    expect(averageDemand(samples, now, 4000)).toBe(1);
    expect(averageDemand(samples, now, 5000)).toBe((7 + 4 * 1) / 5);
  });

  it("takes the only demand that is known for the mean", () => {
    const { samples, now } = samplesOf([[0, 12]]);
    expect(averageDemand(samples, now, window)).toBe(12);
    expect(averageDemand([], now, window)).toBe(0);
  });

  it("stays between the least and the most that was seen", () => {
    fc.assert(
      fc.property(someSteps, fc.integer({ min: 1, max: window }), (steps, milliseconds) => {
        const { samples, now } = samplesOf(steps);
        const average = averageDemand(samples, now, milliseconds);
        const demands = steps.map(([, demand]) => demand);
        expect(average).toBeGreaterThanOrEqual(Math.min(...demands) - 1e-6);
        expect(average).toBeLessThanOrEqual(Math.max(...demands) + 1e-6);
      }),
    );
  });
});

describe("withSample", () => {
  it("keeps a bounded number of samples, however often it is called", () => {
    const steps = Array.from({ length: 50_000 }, (_, i) => [i % 7, i % 100] as const);
    expect(samplesOf(steps).samples.length).toBeLessThanOrEqual(202);
  });

  it("changes no mean by putting samples together", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 100 }), { minLength: 2 }), (demands) => {
        const { samples, now } = samplesOf(demands.map((demand) => [10, demand]));
        const told = demands.slice(1);
        const mean = told.reduce((sum, demand) => sum + demand, 0) / told.length;
        expect(averageDemand(samples, now, window)).toBeCloseTo(mean, 6);
      }),
    );
  });
});
