import { afterEach, describe, expect, it } from "vitest";
import type { WorkerExit } from "../../autoscaler/crash-backoff.ts";
import { defaultWindows } from "../../autoscaler/decide.ts";
import { ScalingLoop, type ScalingLoopOptions } from "../../autoscaler/loop.ts";
import { ProcessScaler } from "../../autoscaler/process-scaler.ts";
import type { Scaler, ScaleReason } from "../../autoscaler/scaler.ts";
import { eventually } from "../helpers/eventually.ts";
import { turn } from "../helpers/fake-clock.ts";
import { SilentLog } from "../helpers/silent-log.ts";
import { HandHeldObserver, quiet } from "./hand-held-observer.ts";

const policy = {
  ...defaultWindows,
  minWorkers: 0,
  maxWorkers: 4,
  targetInFlight: 8,
  idleMilliseconds: 60_000,
};
const never = 2 ** 31 - 1;

/** Has at once what is asked for, and remembers why. */
class InstantScaler implements Scaler {
  workers = 0;
  readonly calls: [count: number, reason: ScaleReason][] = [];
  failure: Error | undefined;

  size(): number {
    return this.workers;
  }

  scaleTo(count: number, reason: ScaleReason): Promise<void> {
    this.calls.push([count, reason]);
    if (this.failure) return Promise.reject(this.failure);
    this.workers = count;
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

const crash: WorkerExit = {
  id: "w",
  code: 1,
  signal: null,
  lifetimeMilliseconds: 50,
  expected: false,
};

describe("ScalingLoop", () => {
  let loop: ScalingLoop | undefined;
  let now = 10_000;
  const stand = (changes: Partial<ScalingLoopOptions> = {}) => {
    const observer = new HandHeldObserver();
    const scaler = new InstantScaler();
    const log = new SilentLog();
    loop = new ScalingLoop({
      pools: [{ name: "a", policy, scaler }],
      observer,
      leads: () => true,
      log,
      intervalMilliseconds: never,
      now: () => now,
      ...changes,
    });
    return { observer, scaler, log, loop };
  };

  afterEach(() => {
    loop?.close();
    now = 10_000;
  });

  it("scales as soon as demand is pushed, and says since when there is demand", async () => {
    const { observer, scaler } = stand();
    await turn();
    await turn();
    observer.push("a", 20);
    await turn();
    await turn();
    const reason = { demandSeenAt: 5000, decidedAt: 10_000, inFlight: new Map() };
    expect(scaler.calls).toEqual([[3, reason]]);
  });

  it("looks every interval", async () => {
    const { observer, scaler } = stand({ intervalMilliseconds: 5 });
    observer.seen = { ...quiet, demand: 1 };
    await eventually(() => expect(scaler.workers).toBe(1));
    await eventually(() => expect(observer.looks).toBeGreaterThan(5));
    expect(scaler.calls).toHaveLength(1);
  });

  it("looks at a pool for a push only while it has no workers", async () => {
    const { observer, scaler } = stand();
    await eventually(() => expect(observer.looks).toBe(1));
    observer.push("a", 1);
    await eventually(() => expect(scaler.workers).toBe(1));
    const { looks } = observer;
    for (let i = 0; i < 100; i++) observer.push("a", 1);
    observer.push("unknown", 1);
    await turn();
    expect(observer.looks).toBe(looks);
  });

  it("puts pushes together that come while it looks", async () => {
    const { observer, scaler } = stand();
    for (let i = 0; i < 1000; i++) observer.push("a", 1);
    await eventually(() => expect(scaler.workers).toBe(1));
    expect(observer.looks).toBeLessThanOrEqual(2);
  });

  it("does not call a pool idle that is pushed between two looks", async () => {
    const { observer, scaler } = stand({ intervalMilliseconds: 5 });
    observer.push("a", 1);
    await eventually(() => expect(scaler.workers).toBe(1));
    observer.seen = quiet;
    for (let i = 0; i < 5; i++) {
      now += 40_000;
      observer.push("a", 0);
      const { looks } = observer;
      // oxlint-disable-next-line no-await-in-loop -- time passes between the pushes
      await eventually(() => expect(observer.looks).toBeGreaterThan(looks + 1));
    }
    expect(scaler.workers).toBe(1);
    now += 60_000;
    await eventually(() => expect(scaler.workers).toBe(0));
  });

  it("only watches while another leads, and scales as soon as it leads itself", async () => {
    let leads = false;
    const { observer, scaler, loop: own } = stand({ intervalMilliseconds: 5, leads: () => leads });
    observer.push("a", 5);
    await eventually(() => expect(observer.looks).toBeGreaterThan(3));
    expect(scaler.calls).toEqual([]);
    expect(own.status()[0]).toMatchObject({ wantedWorkers: 1, decisions: { from_zero: 0 } });
    leads = true;
    await eventually(() => expect(scaler.workers).toBe(1));
  });

  it("keeps the size while the demand is unknown, and says so once", async () => {
    const { observer, scaler, log } = stand({ intervalMilliseconds: 5 });
    observer.push("a", 20);
    await eventually(() => expect(scaler.workers).toBe(3));
    observer.seen = new Error("Redis is away");
    now += 1_000_000;
    const { looks } = observer;
    await eventually(() => expect(observer.looks).toBeGreaterThan(looks + 5));
    expect(scaler.workers).toBe(3);
    expect(log.warnings).toEqual(["pool 'a': observing its demand fails"]);
  });

  it("tries again when scaling fails, and says so once", async () => {
    const { observer, scaler, log } = stand({ intervalMilliseconds: 5 });
    scaler.failure = new Error("the API server is away");
    observer.push("a", 1);
    await eventually(() => expect(scaler.calls.length).toBeGreaterThan(5));
    expect(log.warnings).toEqual(["pool 'a': scaling it fails"]);
    scaler.failure = undefined;
    await eventually(() => expect(scaler.workers).toBe(1));
  });

  it("replaces a worker that died at once, and slower and slower when that goes on", async () => {
    const { observer, scaler, loop: own, log } = stand();
    observer.push("a", 1);
    await eventually(() => expect(scaler.workers).toBe(1));
    scaler.workers = 0;
    now += 1000;
    own.exited("a", crash);
    await eventually(() => expect(scaler.workers).toBe(1));
    // The worker was missed only since the other one died.
    expect(scaler.calls.at(-1)?.[1]).toMatchObject({ demandSeenAt: now, decidedAt: now });
    scaler.workers = 0;
    own.exited("a", crash);
    await eventually(() => expect(own.status()[0]?.decisions.crash_loop).toBe(1));
    now += 100;
    observer.push("a", 1);
    await eventually(() => expect(scaler.workers).toBe(1));
    expect(log.warnings).toHaveLength(2);
    own.exited("a", { ...crash, expected: true });
    expect(log.warnings).toHaveLength(2);
  });

  it("tells how each pool stands", async () => {
    const { observer, scaler, loop: own } = stand();
    await eventually(() => expect(own.status()[0]?.observation).toBeDefined());
    observer.push("a", 90);
    await eventually(() => expect(scaler.workers).toBe(4));
    expect(own.status()).toEqual([
      {
        pool: "a",
        existingWorkers: 4,
        wantedWorkers: 4,
        observation: { ...quiet, demand: 90, demandSince: 5000 },
        decisions: {
          from_zero: 1,
          demand: 0,
          panic: 0,
          idle: 0,
          min: 0,
          max: 0,
          crash_loop: 0,
          hold: 1,
        },
      },
    ]);
  });

  it("scales nothing any more once it is closed", async () => {
    const { observer, scaler, loop: own } = stand({ intervalMilliseconds: 5 });
    observer.push("a", 1);
    own.close();
    expect(observer.listeners).toBe(0);
    await turn();
    await turn();
    expect(scaler.calls).toEqual([]);
  });

  it("brings real processes up for demand, replaces one that is killed, and ends all when idle", async () => {
    const observer = new HandHeldObserver();
    const scaler: ProcessScaler = new ProcessScaler({
      command: () => ({ command: "cat", args: [], env: process.env }),
      graceMilliseconds: 10_000,
      onExit: (exit) => loop?.exited("a", exit),
      onLine: () => {},
    });
    const pools = [{ name: "a", policy: { ...policy, idleMilliseconds: 50 }, scaler }];
    const { leads, log } = { leads: () => true, log: new SilentLog() };
    loop = new ScalingLoop({ pools, observer, leads, log, intervalMilliseconds: 10 });
    observer.push("a", 16);
    const [victim] = await eventually(() => {
      expect(scaler.processIds()).toHaveLength(2);
      return scaler.processIds();
    });
    process.kill(victim ?? 0, "SIGKILL");
    await eventually(() => {
      expect(scaler.processIds()).toHaveLength(2);
      expect(scaler.processIds()).not.toContain(victim);
    });
    observer.seen = quiet;
    await eventually(() => expect(scaler.processIds()).toEqual([]));
    await scaler.close(AbortSignal.timeout(10_000));
  });
});
