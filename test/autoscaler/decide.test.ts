import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decide, defaultWindows, demandSeen, initialState } from "../../autoscaler/decide.ts";
import type {
  ScalingDecision,
  ScalingObservation,
  ScalingPolicy,
} from "../../autoscaler/decide.ts";

const policy: ScalingPolicy = {
  ...defaultWindows,
  minWorkers: 0,
  maxWorkers: 20,
  targetInFlight: 10,
  idleMilliseconds: 120_000,
};
const start = 1_700_000_000_000;

function observation(
  demand: number,
  existingWorkers: number,
  inFlight = 0,
  holders = 0,
): ScalingObservation {
  return {
    demand,
    existingWorkers,
    oldestAgeMilliseconds: 0,
    poolWorkers: [
      { id: "a", state: "ready", inFlight, sequences: 0, startedAt: start },
      ...Array.from({ length: holders }, (_, i) => {
        const id = `holder ${i}`;
        return { id, state: "ready", inFlight: 0, sequences: 2, startedAt: start } as const;
      }),
    ],
  };
}

/** A pool whose scaler does at once what is decided. */
class Pool {
  state = initialState(start);
  now = start;
  workers: number;
  readonly #policy: ScalingPolicy;

  constructor(changes: Partial<ScalingPolicy> = {}, workers = 0) {
    this.#policy = { ...policy, ...changes };
    this.workers = workers;
  }

  /** Lets time pass and looks once. */
  look(milliseconds: number, demand: number, inFlight = 0, holders = 0): ScalingDecision {
    this.now += milliseconds;
    const seen = observation(demand, this.workers, inFlight, holders);
    const { decision, state } = decide(this.#policy, seen, this.state, this.now);
    this.state = state;
    this.workers = decision.workers;
    return decision;
  }

  /** Looks every second; gives each change with the seconds it came after. */
  watch(
    seconds: number,
    demand: number,
    inFlight = 0,
    holders = 0,
  ): [second: number, ...unknown[]][] {
    const changes: [number, ...unknown[]][] = [];
    for (let second = 1; second <= seconds; second++) {
      const before = this.workers;
      const { workers, reason } = this.look(1000, demand, inFlight, holders);
      if (workers !== before) changes.push([second, workers, reason]);
    }
    return changes;
  }
}

describe("decide", () => {
  it("wakes a pool at once with as many workers as its demand needs", () => {
    const pool = new Pool();
    pool.watch(300, 0);
    expect(pool.look(3, 1)).toEqual({ workers: 1, reason: "from_zero" });
    const busier = new Pool();
    busier.watch(300, 0);
    expect(busier.look(3, 45)).toEqual({ workers: 5, reason: "from_zero" });
  });

  it("goes on from the first worker to what the demand needs, without regard to the quiet time before", () => {
    const pool = new Pool();
    pool.watch(300, 0);
    pool.look(3, 1);
    expect(pool.look(10, 45)).toEqual({ workers: 5, reason: "panic" });
  });

  it("wakes a pool within its bounds", () => {
    expect(new Pool({ maxWorkers: 3 }).look(1, 500)).toEqual({ workers: 3, reason: "from_zero" });
    expect(new Pool({ minWorkers: 2 }).look(1, 1)).toEqual({ workers: 2, reason: "from_zero" });
  });

  it("grows by the mean of the panic window, so that a blink of demand adds nothing", () => {
    const pool = new Pool({}, 3);
    pool.watch(60, 30);
    expect(pool.look(20, 300)).toEqual({ workers: 4, reason: "demand" });
    const steady = new Pool({}, 3);
    steady.watch(60, 30);
    steady.watch(6, 41);
    expect(steady.workers).toBe(5);
  });

  it("does not shrink for a stable window after a panic", () => {
    const pool = new Pool({}, 1);
    pool.watch(60, 5);
    expect(pool.watch(6, 60)).toEqual([
      [1, 2, "panic"],
      [2, 3, "panic"],
      [3, 4, "panic"],
      [4, 5, "panic"],
      [5, 6, "panic"],
    ]);
    // The last time that it needed twice what it had was in the first second.
    const changes = pool.watch(70, 5);
    expect(changes[0]?.[0]).toBeGreaterThanOrEqual(55);
  });

  it("shrinks by the mean of the stable window, and by half in a panic window at most", () => {
    const pool = new Pool({}, 16);
    pool.watch(60, 160);
    const changes = pool.watch(70, 10);
    expect(changes.map(([, workers]) => workers)).toEqual([15, 14, 12, 11, 9, 8, 6, 5, 3, 2, 1]);
    const cut = new Pool({ stableWindowMilliseconds: 1000 }, 16);
    cut.watch(10, 160);
    expect(cut.watch(30, 10)).toEqual([
      [1, 8, "demand"],
      [7, 4, "demand"],
      [13, 2, "demand"],
      [19, 1, "demand"],
    ]);
  });

  it("does not shrink before it has watched for a stable window", () => {
    const pool = new Pool({}, 16);
    expect(pool.watch(60, 10)).toEqual([]);
    expect(pool.watch(1, 10)).toEqual([[1, 8, "demand"]]);
  });

  it("keeps the workers that work in flight needs", () => {
    const pool = new Pool({}, 5);
    expect(pool.watch(300, 10, 35).at(-1)?.[1]).toBe(4);
  });

  it("keeps the workers that have open sequences, also while nobody asks", () => {
    const pool = new Pool({}, 5);
    pool.watch(300, 10, 0, 3);
    expect(pool.workers).toBe(3);
    pool.watch(300, 0, 0, 2);
    expect(pool.workers).toBe(2);
    pool.watch(300, 0);
    expect(pool.workers).toBe(0);
  });

  it("keeps one worker until the idle time is over, then falls to the minimum at once", () => {
    const pool = new Pool({}, 8);
    pool.watch(60, 80);
    const changes = pool.watch(200, 0);
    expect(changes.at(-2)?.[1]).toBe(1);
    expect(changes.at(-1)).toEqual([120, 0, "idle"]);
    const quick = new Pool({ idleMilliseconds: 2000, minWorkers: 1 }, 8);
    quick.watch(60, 80);
    expect(quick.watch(10, 0)).toEqual([[2, 1, "idle"]]);
  });

  it("does not call a pool idle that works for a gateway that is gone", () => {
    const pool = new Pool({ idleMilliseconds: 2000 }, 1);
    expect(pool.watch(20, 0, 1)).toEqual([]);
    expect(pool.watch(2, 0)).toEqual([[2, 0, "idle"]]);
  });

  it("does not call a pool idle whose requests come and go between two looks", () => {
    const pool = new Pool({ idleMilliseconds: 2000 }, 1);
    for (let i = 0; i < 20; i++) {
      pool.state = demandSeen(pool.state, pool.now + 500);
      expect(pool.look(1000, 0).reason).toBe("hold");
    }
    expect(pool.watch(2, 0)).toEqual([[2, 0, "idle"]]);
  });

  it("replaces workers that died while there is demand", () => {
    const pool = new Pool({}, 4);
    pool.watch(60, 40);
    pool.workers = 3;
    expect(pool.look(5, 40)).toEqual({ workers: 4, reason: "demand" });
    pool.workers = 0;
    expect(pool.look(5, 40)).toEqual({ workers: 4, reason: "from_zero" });
  });

  it("replaces no worker for demand that is over", () => {
    const pool = new Pool({}, 4);
    pool.watch(60, 40);
    pool.workers = 3;
    expect(pool.look(1000, 0)).toEqual({ workers: 3, reason: "hold" });
    pool.workers = 0;
    expect(pool.look(1000, 0)).toEqual({ workers: 0, reason: "hold" });
  });

  it("adds no worker for a mean that misses steady demand by a rounding error", () => {
    const pauses = fc.array(fc.double({ min: 0.1, max: 5000, noNaN: true }), { maxLength: 60 });
    fc.assert(
      fc.property(pauses, (all) => {
        const pool = new Pool({}, 3);
        for (const pause of all) expect(pool.look(pause, 30).workers).toBe(3);
      }),
    );
  });

  it("adds no worker while a crash loop is waited out", () => {
    const pool = new Pool();
    pool.state = { ...pool.state, crashes: { count: 3, waitUntil: start + 1000 } };
    expect(pool.look(500, 50)).toEqual({ workers: 0, reason: "crash_loop" });
    expect(pool.look(500, 50)).toEqual({ workers: 5, reason: "from_zero" });
  });

  it("holds the minimum and the maximum", () => {
    expect(new Pool({ minWorkers: 2 }).look(1, 0)).toEqual({ workers: 2, reason: "min" });
    expect(new Pool({ minWorkers: 2 }).watch(500, 0)).toEqual([[1, 2, "min"]]);
    expect(new Pool({ maxWorkers: 2 }, 5).look(1, 0)).toEqual({ workers: 2, reason: "max" });
    expect(new Pool({ maxWorkers: 2 }, 2).look(1, 90)).toEqual({ workers: 2, reason: "max" });
  });
});

/** Whatever a pool may live through: looks after pauses, with demand and with workers that die. */
const life = fc.array(
  fc.record({
    pause: fc.integer({ min: 0, max: 30_000 }),
    demand: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 400 })),
    inFlight: fc.integer({ min: 0, max: 50 }),
    deaths: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 5 })),
  }),
  { maxLength: 60 },
);
const anyPolicy = fc
  .record({
    minWorkers: fc.integer({ min: 0, max: 4 }),
    maxWorkers: fc.integer({ min: 4, max: 30 }),
    targetInFlight: fc.integer({ min: 1, max: 20 }),
    idleMilliseconds: fc.integer({ min: 0, max: 100_000 }),
  })
  .map((changes): ScalingPolicy => ({ ...policy, ...changes }));

function lived(given: ScalingPolicy, steps: typeof life extends fc.Arbitrary<infer T> ? T : never) {
  const pool = new Pool(given, given.minWorkers);
  for (const { pause, demand, inFlight, deaths } of steps) {
    pool.workers = Math.max(0, pool.workers - deaths);
    pool.look(pause, demand, inFlight);
  }
  return pool;
}

describe("decide, whatever happens", () => {
  it("stays between the minimum and the maximum", () => {
    fc.assert(
      fc.property(anyPolicy, life, (given, steps) => {
        const pool = lived(given, steps);
        const { workers } = pool.look(1000, steps.length * 7);
        expect(workers).toBeGreaterThanOrEqual(given.minWorkers);
        expect(workers).toBeLessThanOrEqual(given.maxWorkers);
      }),
    );
  });

  it("has a worker as soon as there is demand", () => {
    fc.assert(
      fc.property(anyPolicy, life, fc.integer({ min: 1, max: 50 }), (given, steps, demand) => {
        expect(lived(given, steps).look(0, demand).workers).toBeGreaterThanOrEqual(1);
      }),
    );
  });

  it("falls to the minimum when nobody asks any more", () => {
    fc.assert(
      fc.property(anyPolicy, life, (given, steps) => {
        const pool = lived(given, steps);
        pool.look(1000, 0);
        expect(pool.look(given.idleMilliseconds, 0).workers).toBe(given.minWorkers);
      }),
    );
  });

  it("never has fewer workers for more demand", () => {
    fc.assert(
      fc.property(
        anyPolicy,
        life,
        fc.tuple(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 300 })),
        fc.integer({ min: 0, max: 90_000 }),
        (given, steps, [demand, more], pause) => {
          const less = lived(given, steps).look(pause, demand).workers;
          expect(lived(given, steps).look(pause, demand + more).workers).toBeGreaterThanOrEqual(
            less,
          );
        },
      ),
    );
  });

  it("does not shrink below what the demand and the work in flight need now and did need before", () => {
    fc.assert(
      fc.property(anyPolicy, fc.integer({ min: 1, max: 300 }), (given, demand) => {
        const pool = new Pool(given, given.maxWorkers);
        pool.watch(400, demand, demand);
        const needed = Math.ceil(demand / given.targetInFlight);
        const expected = Math.min(given.maxWorkers, Math.max(1, given.minWorkers, needed));
        expect(pool.workers).toBe(expected);
      }),
    );
  });
});
