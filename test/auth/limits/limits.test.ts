import { describe, expect, it } from "vitest";
import { bounds, largestLimit, noLimits, readLimits } from "../../../auth/limits/limits.ts";

describe("readLimits", () => {
  it("reads what it is given, and nothing else", () => {
    const given = { requestsPerSecond: 1, dailyItems: largestLimit };
    expect(readLimits(given)).toEqual(given);
    expect(readLimits({})).toEqual(noLimits);
  });

  it.each([
    [[], "given no object"],
    [{ requestsPerHour: 1 }, "given 'requestsPerHour', expected some of requestsPerSecond, "],
    [{ inFlight: 0 }, "limits.inFlight: given 0, expected a whole number from 1 to "],
    [{ inFlight: 1.5 }, "limits.inFlight: given 1.5"],
    [{ inFlight: "4" }, 'limits.inFlight: given "4"'],
    [{ dailyItems: 2 * largestLimit }, "limits.dailyItems: given 2000000000000"],
  ])("refuses %j", (given, reason) => {
    expect(() => readLimits(given)).toThrow(reason);
  });
});

describe("bounds", () => {
  it("is true where something is bounded", () => {
    expect([bounds({}), bounds({ itemsPerSecond: 1 })]).toEqual([false, true]);
  });
});
