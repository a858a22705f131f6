import { describe, expect, it } from "vitest";
import { systemClock } from "../../serving/clock.ts";

function elapsed(milliseconds: number): Promise<number> {
  const startedAt = systemClock.now();
  return new Promise((resolve) => {
    systemClock.after(milliseconds, () => resolve(systemClock.now() - startedAt));
  });
}

describe("systemClock", () => {
  it.each([0, 0.1, 0.7, 1.4, 3.3])(
    "never calls back before %d ms have passed",
    async (milliseconds) => {
      for (let i = 0; i < 5; i++)
        expect(await elapsed(milliseconds)).toBeGreaterThanOrEqual(milliseconds);
    },
  );

  it("keeps a delay far shorter than a timer can", async () => {
    const measured: number[] = [];
    for (let i = 0; i < 20; i++) measured.push(await elapsed(0.1));
    expect(Math.min(...measured)).toBeLessThan(0.9);
  });

  it("does not call back when it was taken back, be the wait long or short", async () => {
    let called = false;
    for (const milliseconds of [0, 0.5, 3])
      systemClock.after(milliseconds, () => (called = true))();
    await elapsed(5);
    expect(called).toBe(false);
  });
});
