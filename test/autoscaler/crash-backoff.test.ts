import { describe, expect, it } from "vitest";
import { afterExit, noCrashes, type WorkerExit } from "../../autoscaler/crash-backoff.ts";

const now = 1_000_000;
const early: WorkerExit = {
  id: "a",
  code: 1,
  signal: null,
  lifetimeMilliseconds: 200,
  expected: false,
};

/** The wait after each of so many early deaths, each right after the last wait. */
function waits(count: number): number[] {
  let history = noCrashes;
  let at = now;
  return Array.from({ length: count }, () => {
    history = afterExit(history, early, at);
    const wait = history.waitUntil - at;
    at = history.waitUntil;
    return wait;
  });
}

describe("afterExit", () => {
  it("waits not at all, then 100 ms, then twice as long each time, and 30 seconds at most", () => {
    const all = waits(40);
    expect(all.slice(0, 5)).toEqual([0, 100, 200, 400, 800]);
    expect(Math.max(...all)).toBe(30_000);
    expect(all.at(-1)).toBe(30_000);
  });

  it("learns nothing from a worker that was asked to end", () => {
    expect(afterExit(noCrashes, { ...early, expected: true }, now)).toBe(noCrashes);
  });

  it("starts anew after a worker that lived for a while", () => {
    const history = { count: 6, waitUntil: now + 3000 };
    expect(afterExit(history, { ...early, lifetimeMilliseconds: 5000 }, now)).toBe(noCrashes);
  });

  it("starts anew when the last early death is long ago", () => {
    const history = { count: 6, waitUntil: now };
    expect(afterExit(history, early, now + 60_001)).toMatchObject({ count: 1 });
    expect(afterExit(history, early, now + 59_999)).toMatchObject({ count: 7 });
  });
});
