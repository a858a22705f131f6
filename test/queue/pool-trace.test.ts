import { describe, expect, it } from "vitest";
import type { ComputeMoments } from "../../protocol/request-trace.ts";
import { PoolTrace, tellPoolTimes, type PoolTimes } from "../../queue/pool-trace.ts";

/** What a gateway's trace is told, on the clock of its process. */
function told(times: PoolTimes, sentAt: number, receivedAt: number) {
  const computes: ComputeMoments[] = [];
  let arrivedAt = NaN;
  const trace = Object.assign(new PoolTrace(""), {
    arrived: (at: number) => (arrivedAt = at),
    computed: (moments: ComputeMoments) => computes.push(moments),
  });
  tellPoolTimes(trace, times, sentAt, receivedAt);
  return { arrivedAt, computes };
}

/** Milliseconds since the epoch of this process's clock. */
const epoch = performance.timeOrigin;

/** The pool worker had the request for 10 ms, from `at` of this process's clock if its own clock is right. */
function poolTimes(at: number): PoolTimes {
  const taken = epoch + at;
  return {
    takenAt: taken,
    repliedAt: taken + 10,
    computes: [[taken + 2, taken + 3, taken + 7, taken + 9]],
  };
}

describe("tellPoolTimes", () => {
  it("puts the pool worker's times on the gateway's clock", () => {
    const { arrivedAt, computes } = told(poolTimes(105), 100, 120);
    expect(arrivedAt).toBeCloseTo(105, 2);
    expect(computes[0]?.startAt).toBeCloseTo(107, 2);
    expect(computes[0]?.inputEndAt).toBeCloseTo(108, 2);
    expect(computes[0]?.outputStartAt).toBeCloseTo(112, 2);
    expect(computes[0]?.endAt).toBeCloseTo(114, 2);
  });

  it("moves the times of a clock that is behind to where the request was sent", () => {
    expect(told(poolTimes(-60_000), 100, 120).arrivedAt).toBeCloseTo(100, 2);
  });

  it("moves the times of a clock that is ahead to where the reply came", () => {
    const { arrivedAt, computes } = told(poolTimes(60_000), 100, 120);
    expect(arrivedAt).toBeCloseTo(110, 2);
    expect(computes[0]?.endAt).toBeCloseTo(119, 2);
  });
});

describe("PoolTrace", () => {
  it("tells of each execution once, with the times of this machine", () => {
    const before = performance.now();
    const trace = new PoolTrace("00-1-2-01");
    expect(trace.traceparent).toBe("00-1-2-01");
    trace.computed({ startAt: 1, inputEndAt: 2, outputStartAt: 3, endAt: 4 });
    const first = trace.times();
    expect(first.computes).toEqual([[epoch + 1, epoch + 2, epoch + 3, epoch + 4]]);
    expect(first.takenAt).toBeGreaterThanOrEqual(epoch + before);
    expect(first.repliedAt).toBeGreaterThanOrEqual(first.takenAt);
    expect(trace.times().computes).toEqual([]);
  });

  it("has no context for a trace that nobody else has part in", () => {
    expect(new PoolTrace("").traceparent).toBeUndefined();
  });
});
