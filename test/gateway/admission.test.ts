import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anonymousCaller } from "../../auth/caller.ts";
import { CallerLimits } from "../../auth/limits/caller-limits.ts";
import { noLimits } from "../../auth/limits/limits.ts";
import { memoryPoints } from "../../auth/limits/points.ts";
import { Admission, type AdmissionOptions, type Permit } from "../../gateway/admission.ts";
import { ModelLoads } from "../../gateway/model-load.ts";
import { Refusals } from "../../gateway/refusals.ts";
import { Call } from "../../protocol/call.ts";
import { StatusCode } from "../../protocol/error.ts";

let now = 0;

function admission(more: Partial<AdmissionOptions> = {}): Admission {
  now = 1000;
  return new Admission({
    maxRequests: 100,
    maxModelRequests: 50,
    maxBytes: 1000,
    refusals: new Refusals(),
    now: () => now,
    ...more,
  });
}

/** Lets a call in at once. */
function enter(to: Admission, model = "m", bytes = 0): { permit: Permit; call: Call } {
  const call = new Call(anonymousCaller, now);
  const permit = to.enter({ caller: anonymousCaller, call, model, bytes });
  if (permit instanceof Promise) throw new Error("nobody had to be asked");
  return { permit, call };
}

/** What an attempt is refused with. */
function refusal(attempt: () => unknown): unknown {
  try {
    attempt();
  } catch (error) {
    return error;
  }
  return undefined;
}

const someMarks = { decidedAt: 0, fetchAt: 0, loadAt: 0, warmupAt: 0, readyAt: 0 };

describe("Admission", () => {
  it("says when what is under way will be through, by how fast it went", () => {
    const to = admission({ maxModelRequests: 40 });
    const open = Array.from({ length: 40 }, () => enter(to));
    for (let i = 0; i < 30; i++) {
      now += 100;
      open.shift()?.permit.release();
      open.push(enter(to));
    }
    // Ten a second, of forty.
    expect(refusal(() => enter(to))).toMatchObject({
      code: StatusCode.Unavailable,
      message: "requests in flight for model 'm': given one more, expected at most 40",
      retryAfterSeconds: 4,
    });
  });

  it("says when a model's start will be over, by what it took before", () => {
    const to = admission({ maxModelRequests: 2 });
    const cold = enter(to);
    now += 8000;
    cold.call.coldStart = someMarks;
    cold.permit.release();
    now += 60_000;
    enter(to);
    enter(to);
    now += 3000;
    expect(refusal(() => enter(to))).toMatchObject({ retryAfterSeconds: 5 });
    now += 2500;
    expect(refusal(() => enter(to))).toMatchObject({ retryAfterSeconds: 3 });
  });

  it("learns what a start took from the call that began it, not from those who came later", () => {
    const to = admission({ maxModelRequests: 2 });
    const first = enter(to);
    now += 7000;
    const late = enter(to);
    now += 1000;
    for (const { call, permit } of [first, late]) {
      call.coldStart = someMarks;
      permit.release();
    }
    now += 60_000;
    enter(to);
    enter(to);
    expect(refusal(() => enter(to))).toMatchObject({ retryAfterSeconds: 8 });
  });

  it("says of bytes when those that are held will have gone", () => {
    const to = admission();
    for (let i = 0; i < 20; i++) {
      now += 100;
      enter(to, "m", 10).permit.release();
    }
    enter(to, "m", 950);
    expect(refusal(() => enter(to, "m", 51))).toMatchObject({
      code: StatusCode.Unavailable,
      message: "request bytes in flight: given 51 more, expected at most 1000 of all requests",
      retryAfterSeconds: 10,
    });
    expect(refusal(() => enter(to, "m", 1001))).toMatchObject({ retryAfterSeconds: undefined });
    expect(to.requests).toBe(1);
  });

  it("counts a body anew when more is known of it", () => {
    const to = admission();
    const { permit } = enter(to, "m", 900);
    permit.hold(100);
    expect(to.bytes).toBe(100);
    expect(refusal(() => permit.hold(1001))).toBeDefined();
    expect(to.bytes).toBe(100);
    permit.release();
    permit.release();
    expect([to.bytes, to.requests]).toEqual([0, 0]);
  });

  it("has nothing under way after thousands of calls, however they ended", async () => {
    const limits = new CallerLimits({
      rules: {
        eachKey: noLimits,
        eachTenant: { inFlight: 20, itemsPerSecond: 50 },
        tenants: new Map(),
      },
      points: memoryPoints(),
      now: () => performance.now(),
      today: Date.now,
      onRefused: () => {},
    });
    const to = admission({ limits, maxRequests: 30, maxBytes: 500 });
    const step = fc.record({
      bytes: fc.integer({ min: 0, max: 120 }),
      model: fc.constantFrom("a", "b"),
      items: fc.integer({ min: 1, max: 30 }),
      lasts: fc.integer({ min: 0, max: 5 }),
      grows: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 100 }), async (steps) => {
        const run = async ({ bytes, model, items, lasts, grows }: (typeof steps)[number]) => {
          const call = new Call(anonymousCaller, now);
          const permit = await to.enter({ caller: anonymousCaller, call, model, bytes });
          try {
            for (let i = 0; i < lasts; i++) await Promise.resolve();
            if (grows) permit.hold(bytes + 50);
            await permit.charge(items);
          } finally {
            permit.release();
          }
        };
        await Promise.allSettled(steps.map(run));
        expect([to.requests, to.bytes]).toEqual([0, 0]);
        const call = new Call(anonymousCaller, now);
        const last = await to.enter({ caller: anonymousCaller, call, model: "a", bytes: 0 });
        expect(last.quota?.left).toContain('"tenant-in-flight";r=19');
        last.release();
      }),
      { numRuns: 60 },
    );
  });
});

describe("ModelLoads", () => {
  it("remembers a thousand models at most, and all that have something under way", () => {
    const loads = new ModelLoads();
    loads.of("busy").begin(0);
    for (let i = 0; i < 5000; i++) loads.of(`m${i}`);
    expect(loads.size).toBeLessThanOrEqual(1000);
    expect(loads.of("busy").inFlight).toBe(1);
  });
});

describe("Refusals", () => {
  it("counts tenants beyond a hundred together", () => {
    const refusals = new Refusals();
    for (let i = 0; i < 150; i++) refusals.count("key-requests", `t${i}`);
    refusals.count("key-items", "t149");
    refusals.count("key-items", "t3");
    const counted = [...refusals];
    expect(counted).toHaveLength(103);
    expect(counted).toContainEqual({ reason: "key-requests", tenant: "other", count: 50 });
    expect(counted).toContainEqual({ reason: "key-items", tenant: "other", count: 1 });
    expect(counted).toContainEqual({ reason: "key-items", tenant: "t3", count: 1 });
  });
});
