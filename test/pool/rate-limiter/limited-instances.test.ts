import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { InstanceGroup } from "../../../pool/instance/model-instance.ts";
import { LimitedInstances } from "../../../pool/rate-limiter/limited-instances.ts";
import { RateLimiter } from "../../../pool/rate-limiter/rate-limiter.ts";
import { directScheduler } from "../../../pool/scheduler/direct-scheduler.ts";
import { dynamicBatchScheduler } from "../../../pool/scheduler/dynamic-batch-scheduler.ts";
import type { SchedulerOptions } from "../../../pool/scheduler/queue-scheduler.ts";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { Scheduler } from "../../../serving/scheduler.ts";
import { turn } from "../../helpers/fake-clock.ts";
import { HandHeldInstances } from "../../helpers/hand-held-instances.ts";
import type { SentRequest } from "../../helpers/requests.ts";
import { SchedulerStand } from "../../helpers/scheduler-stand.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";

const model = servedModel("m", {
  maxBatchSize: 4,
  input: [modelInput("IN", "TYPE_FP32", [4])],
  output: [modelOutput("OUT", "TYPE_FP32", [4])],
});
const batching = {
  preferredBatchSize: [],
  maxQueueDelayMicroseconds: 1000,
  preserveOrdering: false,
  priorityLevels: 0,
  defaultPriorityLevel: 0,
  priorityQueuePolicy: {},
};

type Create = (options: SchedulerOptions) => Scheduler;
const direct: Create = directScheduler;
const dynamic: Create = (options) => dynamicBatchScheduler(model.config, batching, options);

/** A model whose instances each need so much of `R`, with its scheduler. */
function limitedStand(
  limiter: RateLimiter,
  count: number,
  instances = 1,
  create = direct,
): SchedulerStand {
  const needs = [{ name: "R", device: 0, count }];
  const seats = limiter.register(Array.from({ length: instances }, () => ({ needs, priority: 0 })));
  const limited = (options: SchedulerOptions): Scheduler =>
    create({ ...options, instances: new LimitedInstances(options.instances, seats) });
  return new SchedulerStand(model, limited, instances);
}

async function settle(): Promise<void> {
  for (let i = 0; i < 4; i++) await turn();
}

describe("LimitedInstances", () => {
  it("runs no two executions that need the same resource, of whatever model", async () => {
    const limiter = new RateLimiter([]);
    const [a, b] = [limitedStand(limiter, 1), limitedStand(limiter, 1)];
    a.enqueue("a");
    b.enqueue("b");
    await settle();
    expect([a.ran, b.ran]).toEqual([["a"], []]);
    await a.finish(0);
    await settle();
    expect(b.ran).toEqual(["b"]);
  });

  it("runs as many instances of a model as there is enough for, one execution each", async () => {
    const stand = limitedStand(new RateLimiter([{ name: "R", count: 2 }]), 1, 3);
    for (const id of ["a", "b", "c", "d"]) stand.enqueue(id);
    await settle();
    expect(stand.ran).toEqual(["a", "b"]);
    await stand.finish(1);
    await settle();
    await stand.finish(0);
    await settle();
    expect(stand.ran.toSorted()).toEqual(["a", "b", "c", "d"]);
    expect(new Set(stand.instances.executions.map(({ instance }) => instance)).size).toBe(3);
  });

  it("counts the wait for a resource as time in the queue", async () => {
    const limiter = new RateLimiter([]);
    const [a, b] = [limitedStand(limiter, 1), limitedStand(limiter, 1)];
    a.enqueue("a");
    b.enqueue("b");
    await settle();
    await b.clock.advance(20);
    await a.finish(0);
    await settle();
    await b.finish(0);
    await settle();
    expect(b.statistics.snapshot().inferenceStats.queue).toEqual({ count: 1, nanoseconds: 20e6 });
  });

  it("makes those that wait for a closed version fail, and gives its resources to the others", async () => {
    const limiter = new RateLimiter([]);
    const other = limitedStand(limiter, 1);
    const seats = limiter.register([{ needs: [{ name: "R", device: 0, count: 1 }], priority: 0 }]);
    const inner = new HandHeldInstances();
    const limited = new LimitedInstances(inner, seats);
    other.enqueue("other");
    await settle();
    const waiting = limited.next()?.execute([other.prepare("waiting")]);
    await settle();
    expect(limited.next()).toBeUndefined();
    expect(inner.ran).toEqual([]);
    await limited.close();
    await settle();
    // A closed instance refuses it.
    inner.executions[0]?.finish();
    await expect(waiting).resolves.toBeDefined();
    await other.finish(0);
    other.enqueue("more");
    await settle();
    expect(other.ran).toEqual(["other", "more"]);
  });

  it("has room again after an execution that its instance refused at once", async () => {
    const refused = new InferenceError(StatusCode.InvalidArg, "no");
    const group: InstanceGroup = {
      instances: [{ name: "m_0", hasRoom: true, execute: () => Promise.reject(refused) }],
      next: () => undefined,
      onRoom: () => {},
      healthy: true,
      close: () => Promise.resolve(),
    };
    const seats = new RateLimiter([]).register([
      { needs: [{ name: "R", device: 0, count: 1 }], priority: 0 },
    ]);
    const stand = new SchedulerStand(model, (options) =>
      direct({ ...options, instances: new LimitedInstances(group, seats) }),
    );
    const sent = ["a", "b", "c"].map((id) => stand.enqueue(id));
    for (let i = 0; i < 10; i++) await turn();
    expect(sent.map(({ sink }) => sink.error)).toEqual([refused, refused, refused]);
  });

  it("loses no request and stops nobody's line, whatever finishes when", async () => {
    const arrivals = fc.array(fc.tuple(fc.nat(2), fc.constantFrom("send", "finish", "wait")), {
      maxLength: 60,
    });
    await fc.assert(
      fc.asyncProperty(arrivals, async (steps) => {
        const limiter = new RateLimiter([{ name: "R", count: 2 }]);
        const stands = [
          limitedStand(limiter, 1, 2),
          limitedStand(limiter, 2),
          limitedStand(limiter, 1, 1, dynamic),
        ];
        const finished = stands.map(() => 0);
        const sent: SentRequest[] = [];
        const finish = async (which: number): Promise<void> => {
          const at = finished[which] ?? 0;
          if (at >= (stands[which]?.ran.length ?? 0)) return;
          finished[which] = at + 1;
          await stands[which]?.finish(at);
        };
        for (const [which, step] of steps) {
          const stand = stands[which];
          if (step === "send" && stand) sent.push(stand.enqueue(`${sent.length}`));
          else if (step === "finish") await finish(which);
          else await stand?.clock.advance(1);
        }
        for (let i = 0; i < 300 && sent.some(({ sink }) => !sink.ended); i++) {
          for (const [which, stand] of stands.entries()) {
            await stand.clock.advance(1);
            await finish(which);
          }
        }
        expect(sent.filter(({ sink }) => sink.responses.length !== 1)).toEqual([]);
        expect(stands.map(({ scheduler }) => scheduler.inflight)).toEqual([0, 0, 0]);
      }),
      { numRuns: 60 },
    );
  }, 60_000);
});
