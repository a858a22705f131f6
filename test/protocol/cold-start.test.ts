import { describe, expect, it } from "vitest";
import { type ColdStartDurations, coldStartDurations } from "../../protocol/cold-start.ts";

const marks = { decidedAt: 110, fetchAt: 400, loadAt: 450, warmupAt: 520, readyAt: 530 };

function sum(durations: ColdStartDurations): number {
  return Object.values<number>(durations).reduce((total, one) => total + one, 0);
}

describe("coldStartDurations", () => {
  it("gives every moment from the request to its answer to one phase", () => {
    const durations = coldStartDurations(marks, 100, 545);
    expect(durations).toEqual({
      schedule: 10,
      spawn: 290,
      fetch: 50,
      load: 70,
      warmup: 10,
      first_infer: 15,
    });
    expect(sum(durations)).toBe(445);
  });

  it("counts nothing that was over before the request came", () => {
    const durations = coldStartDurations(marks, 500, 545);
    expect(durations).toMatchObject({ schedule: 0, spawn: 0, fetch: 0, load: 20, warmup: 10 });
    expect(sum(durations)).toBe(45);
  });

  it("calls it schedule when a request waits for its turn on a pool worker that is there", () => {
    const durations = coldStartDurations({ ...marks, decidedAt: 5 }, 100, 545);
    expect(durations).toMatchObject({ schedule: 300, spawn: 0, fetch: 50 });
    expect(sum(durations)).toBe(445);
  });

  it("adds up although the pool worker's clock is behind or ahead", () => {
    for (const skew of [-1000, -200, 200, 1000]) {
      const skewed = Object.entries(marks).map(([mark, at]) => [mark, at + skew]);
      const durations = coldStartDurations({ ...marks, ...Object.fromEntries(skewed) }, 100, 545);
      expect(sum(durations)).toBe(445);
      expect(Math.min(...Object.values<number>(durations))).toBeGreaterThanOrEqual(0);
    }
  });
});
