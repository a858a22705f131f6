import { describe, expect, it } from "vitest";
import { endWithin } from "../../cli/drain.ts";

describe("endWithin", () => {
  it("is true when the end came in time", async () => {
    await expect(endWithin(10, () => Promise.resolve())).resolves.toBe(true);
  });

  it("is false, and tells the work, when the time was over first", async () => {
    let told: AbortSignal | undefined;
    const forever = (overdue: AbortSignal) => {
      told = overdue;
      return new Promise<void>(() => undefined);
    };
    await expect(endWithin(0.01, forever)).resolves.toBe(false);
    expect(told?.aborted).toBe(true);
  });

  it("fails as the work fails", async () => {
    const failed = Promise.reject(new Error("broken"));
    await expect(endWithin(10, () => failed)).rejects.toThrow("broken");
  });
});
