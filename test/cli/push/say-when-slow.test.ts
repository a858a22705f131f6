import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { sayWhenSlow } from "../../../cli/push/say-when-slow.ts";

describe("sayWhenSlow", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("says it once, after ten seconds", async () => {
    const { promise, resolve } = Promise.withResolvers<number>();
    let said = 0;
    const told = sayWhenSlow(promise, () => said++);
    await vi.advanceTimersByTimeAsync(9999);
    expect(said).toBe(0);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(said).toBe(1);
    resolve(7);
    expect(await told).toBe(7);
  });

  it("says nothing of a task that ends before, well or not", async () => {
    let said = 0;
    await sayWhenSlow(Promise.resolve(), () => said++);
    const failed = sayWhenSlow(Promise.reject(new Error("no")), () => said++);
    await expect(failed).rejects.toThrow("no");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(said).toBe(0);
  });
});
