import { describe, expect, it } from "vitest";
import { quotaState } from "../../../auth/limits/quota-state.ts";

describe("quotaState", () => {
  it("tells quotas as lists of structured fields", () => {
    const window = { seconds: 1, secondsLeft: 0.2 };
    const { policy, left } = quotaState([
      { name: "key-requests", limit: 50, left: 49, window },
      { name: "key-in-flight", limit: 8, left: 0, unit: "concurrent-requests" },
      {
        name: "tenant-daily-items",
        limit: 1_000_000_000_000,
        left: 999_999_999_999,
        unit: "items",
        window: { seconds: 86_400, secondsLeft: 86_399.01 },
      },
    ]);
    expect(policy).toBe(
      '"key-requests";q=50;w=1, "key-in-flight";q=8;qu="concurrent-requests", "tenant-daily-items";q=1000000000000;qu="items";w=86400',
    );
    expect(left).toBe(
      '"key-requests";r=49;t=1, "key-in-flight";r=0, "tenant-daily-items";r=999999999999;t=86400',
    );
  });
});
