import { describe, expect, it } from "vitest";
import { quantileOf } from "../../telemetry/quantile.ts";

const bounds = [100, 200, 400];

describe("quantileOf", () => {
  it("is linear within a bucket", () => {
    expect(quantileOf(0.5, bounds, [0, 10, 10, 10])).toBe(150);
    expect(quantileOf(0.5, bounds, [10, 10, 10, 10])).toBe(50);
    expect(quantileOf(0.75, bounds, [0, 2, 4, 4])).toBe(300);
  });

  it("gives the last bound for what lies beyond it", () => {
    expect(quantileOf(0.99, bounds, [0, 0, 0, 5])).toBe(400);
  });

  it("is no number without observations", () => {
    expect(quantileOf(0.5, bounds, [0, 0, 0, 0])).toBeNaN();
  });
});
