import { describe, expect, it } from "vitest";
import { retryAt } from "../../../gateway/webhooks/retry.ts";

const rules = { attempts: 8, firstMilliseconds: 5000 };
const now = Date.parse("2026-11-21T20:00:00Z");

function after(attempt: number, retryAfter?: string, random = 0.5): number {
  return retryAt(rules, attempt, retryAfter, { now, random }) - now;
}

describe("retryAt", () => {
  it("waits five times as long each time, a day at most", () => {
    expect([1, 2, 3, 7].map((attempt) => after(attempt))).toEqual([
      5000, 25_000, 125_000, 78_125_000,
    ]);
    expect(after(19)).toBe(86_400_000);
  });

  it("makes eight attempts in about a day", () => {
    const all = [1, 2, 3, 4, 5, 6, 7].map((attempt) => after(attempt));
    const hours = all.reduce((sum, one) => sum + one, 0) / 3_600_000;
    expect(hours).toBeGreaterThan(20);
    expect(hours).toBeLessThan(30);
  });

  it("waits a quarter less or more by chance", () => {
    expect([after(1, undefined, 0), after(1, undefined, 1)]).toEqual([3750, 6250]);
  });

  it("waits as long as the receiver asks, if that is longer, and no longer than a day", () => {
    expect(after(1, "60")).toBe(60_000);
    expect(after(1, "Sat, 21 Nov 2026 20:02:00 GMT")).toBe(120_000);
    expect(after(1, "1")).toBe(5000);
    expect(after(1, "999999999")).toBe(86_400_000);
  });

  it.each(["", "-5", "soon", "1e9", "Sat, 21 Nov 2020 20:02:00 GMT", "9999999999"])(
    "does not heed %s",
    (text) => {
      expect(after(1, text)).toBe(5000);
    },
  );
});
