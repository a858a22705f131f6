import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LatencyHistogram, latencyBoundsMicroseconds } from "../../telemetry/latency-histogram.ts";

describe("LatencyHistogram", () => {
  it("counts a duration in every bucket whose bound it does not exceed", () => {
    const duration = fc.double({ min: 0, max: 1e10, noNaN: true });
    const onBound = fc.constantFrom(...latencyBoundsMicroseconds);
    fc.assert(
      fc.property(fc.array(fc.oneof(duration, onBound)), (durations) => {
        const histogram = new LatencyHistogram();
        for (const microseconds of durations) histogram.observe(microseconds);
        const expected = [...latencyBoundsMicroseconds, Infinity].map(
          (bound) => durations.filter((microseconds) => microseconds <= bound).length,
        );
        expect(histogram.cumulative()).toEqual(expected);
      }),
    );
  });

  it("counts a duration that several requests shared as often", () => {
    const histogram = new LatencyHistogram();
    histogram.observe(70, 3);
    expect(histogram.cumulative().slice(0, 3)).toEqual([0, 3, 3]);
  });

  it("counts a duration beyond 32 bits of microseconds in the last bucket", () => {
    const histogram = new LatencyHistogram();
    histogram.observe(2 ** 33);
    expect(histogram.cumulative().at(-2)).toBe(0);
    expect(histogram.cumulative().at(-1)).toBe(1);
  });
});
