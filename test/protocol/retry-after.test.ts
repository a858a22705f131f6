import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { retryAfterSeconds } from "../../protocol/retry-after.ts";

describe("retryAfterSeconds", () => {
  it("is when what waits will be through", () => {
    expect(retryAfterSeconds({ waiting: 500, drainedPerSecond: 40 })).toBe(13);
    expect(retryAfterSeconds({ waiting: 1, drainedPerSecond: 40 })).toBe(1);
  });

  it("is when the model's start will be over while nothing goes", () => {
    const coldStart = { usualMilliseconds: 12_000, elapsedMilliseconds: 3500 };
    expect(retryAfterSeconds({ waiting: 500, drainedPerSecond: 0, coldStart })).toBe(9);
    expect(retryAfterSeconds({ waiting: 8, drainedPerSecond: 4, coldStart })).toBe(2);
  });

  it("is a guess where a start takes longer than it did, and where nothing is known", () => {
    const coldStart = { usualMilliseconds: 1000, elapsedMilliseconds: 3500 };
    expect(retryAfterSeconds({ waiting: 1, drainedPerSecond: 0, coldStart })).toBe(5);
    expect(retryAfterSeconds({ waiting: 1, drainedPerSecond: 0 })).toBe(5);
  });

  it("is a whole number of seconds from 1 to 300", () => {
    const amount = fc.double({ min: 0, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(amount, amount, amount, amount, (waiting, drainedPerSecond, usual, elapsed) => {
        const coldStart = { usualMilliseconds: usual, elapsedMilliseconds: elapsed };
        const seconds = retryAfterSeconds({ waiting, drainedPerSecond, coldStart });
        expect(Number.isInteger(seconds)).toBe(true);
        expect(seconds).toBeGreaterThanOrEqual(1);
        expect(seconds).toBeLessThanOrEqual(300);
      }),
    );
  });
});
