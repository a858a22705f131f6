import { describe, expect, it } from "vitest";
import { dynamicStand, noPolicy } from "../../helpers/dynamic-batching.ts";
import { turn } from "../../helpers/fake-clock.ts";
import type { SchedulerStand } from "../../helpers/scheduler-stand.ts";
import type { SentRequest } from "../../helpers/requests.ts";

const twoLevels = { priorityLevels: 2, defaultPriorityLevel: 2 };
const rejecting = { ...noPolicy, defaultTimeoutMicroseconds: 5000 };
const delaying = { ...rejecting, timeoutAction: "DELAY" } as const;

const expired = { code: "UNAVAILABLE", message: "[request id: a] Request timeout expired" };
const full = { code: "UNAVAILABLE", message: "[request id: c] Exceeds maximum queue size" };

/** Hands over a request of a level. */
function enqueue(stand: SchedulerStand, id: string, priority: number): SentRequest {
  return stand.enqueue(id, undefined, { priority });
}

/** Lets every execution end, one after the other. */
async function finishAll(stand: SchedulerStand): Promise<void> {
  for (let i = 0; i < stand.ran.length; i++) await stand.finish(i);
}

describe("priority_levels", () => {
  it("lets the higher level go first, and within a level whoever came first", async () => {
    const stand = dynamicStand({ maxBatchSize: 1, priorityLevels: 3, defaultPriorityLevel: 3 });
    await stand.send("busy");
    for (const [id, priority] of Object.entries({ a: 3, b: 2, c: 1, d: 2, e: 1 }))
      enqueue(stand, id, priority);
    await finishAll(stand);
    expect(stand.ran).toEqual(["busy", "c", "e", "b", "d", "a"]);
  });

  it("takes a request without a priority, or with one that does not exist, for the default level", async () => {
    const stand = dynamicStand({ maxBatchSize: 1, priorityLevels: 3, defaultPriorityLevel: 2 });
    await stand.send("busy");
    for (const [id, priority] of Object.entries({ a: 3, b: 0, c: 4, d: 2, e: 1 }))
      enqueue(stand, id, priority);
    await finishAll(stand);
    expect(stand.ran).toEqual(["busy", "e", "b", "c", "d", "a"]);
  });

  it("means nothing to a model without levels", async () => {
    const stand = dynamicStand({ maxBatchSize: 1 });
    await stand.send("busy");
    enqueue(stand, "a", 2);
    enqueue(stand, "b", 1);
    await finishAll(stand);
    expect(stand.ran).toEqual(["busy", "a", "b"]);
  });

  it("fills a batch up with requests of the next level", async () => {
    const stand = dynamicStand({ maxBatchSize: 3, ...twoLevels });
    await stand.send("busy", "busy", "busy");
    for (const [id, priority] of Object.entries({ a: 2, b: 2, c: 1, d: 1 }))
      enqueue(stand, id, priority);
    await finishAll(stand);
    expect(stand.ran).toEqual(["busy+busy+busy", "c+d+a", "b"]);
  });

  it("counts a batch anew when a request of a higher level gets in front of it", async () => {
    const stand = dynamicStand({
      ...twoLevels,
      preferredBatchSize: [3],
      maxQueueDelayMicroseconds: 1000,
    });
    await stand.send("a", "b");
    stand.enqueue("big", [7, 4], { priority: 1 });
    await turn();
    expect(stand.ran).toEqual(["big"]);
    await stand.finish(0);
    expect(stand.ran).toEqual(["big"]);
    await stand.clock.advance(1);
    expect(stand.ran).toEqual(["big", "a+b"]);
  });

  it("counts the queue delay from the oldest request of a batch, whatever its level", async () => {
    const stand = dynamicStand({ ...twoLevels, maxQueueDelayMicroseconds: 1000 });
    enqueue(stand, "a", 2);
    await turn();
    await stand.clock.advance(0.7);
    enqueue(stand, "b", 1);
    await turn();
    await stand.clock.advance(0.3);
    expect(stand.ran).toEqual(["b+a"]);
  });
});

describe("max_queue_size", () => {
  it("refuses at once who would be one too many, and counts a rejection", async () => {
    const stand = dynamicStand({ defaultQueuePolicy: { ...noPolicy, maxQueueSize: 2 } });
    await stand.send("busy");
    await stand.send("a", "b");
    expect(stand.enqueue("c").sink.error).toMatchObject(full);
    expect(stand.statistics.observe()).toMatchObject({ pending: 2, failures: { REJECTED: 1 } });
    expect(stand.scheduler.inflight).toBe(3);
  });

  it("has a place again when one leaves", async () => {
    const stand = dynamicStand({ defaultQueuePolicy: { ...noPolicy, maxQueueSize: 2 } });
    await stand.send("busy");
    const [, b] = await stand.send("a", "b");
    b?.call.cancel();
    expect(stand.enqueue("d").sink.ended).toBe(false);
    expect(stand.enqueue("c").sink.error).toMatchObject(full);
    await stand.finish(0);
    expect(stand.enqueue("e").sink.ended).toBe(false);
  });

  it("holds for each level by itself, with those that are delayed", async () => {
    const stand = dynamicStand({
      ...twoLevels,
      defaultQueuePolicy: { ...delaying, maxQueueSize: 2 },
    });
    await stand.send("busy");
    enqueue(stand, "a", 1);
    await turn();
    await stand.clock.advance(5);
    enqueue(stand, "b", 1);
    expect(enqueue(stand, "c", 1).sink.error).toMatchObject(full);
    expect(enqueue(stand, "d", 2).sink.ended).toBe(false);
    expect(enqueue(stand, "e", 2).sink.ended).toBe(false);
    expect(enqueue(stand, "c", 2).sink.error).toMatchObject(full);
  });

  it("is that of the level where the level has a policy of its own", async () => {
    const stand = dynamicStand({
      ...twoLevels,
      defaultQueuePolicy: { ...noPolicy, maxQueueSize: 1 },
      priorityQueuePolicy: { 1: { ...noPolicy, maxQueueSize: 2 } },
    });
    await stand.send("busy");
    expect(enqueue(stand, "a", 1).sink.ended).toBe(false);
    expect(enqueue(stand, "b", 1).sink.ended).toBe(false);
    expect(enqueue(stand, "c", 1).sink.error).toMatchObject(full);
    expect(enqueue(stand, "d", 2).sink.ended).toBe(false);
    expect(enqueue(stand, "c", 2).sink.error).toMatchObject(full);
  });
});

describe("default_timeout_microseconds", () => {
  it("takes a request out of the line while every instance is busy", async () => {
    const stand = dynamicStand({ defaultQueuePolicy: rejecting });
    await stand.send("busy");
    const [a] = await stand.send("a");
    await stand.clock.advance(4.9);
    expect(a?.sink.ended).toBe(false);
    await stand.clock.advance(0.1);
    expect(a?.sink.error).toMatchObject(expired);
    expect(stand.statistics.observe().failures.REJECTED).toBe(1);
  });

  it("takes one out that only waits for its batch to fill", async () => {
    const stand = dynamicStand({
      defaultQueuePolicy: rejecting,
      maxQueueDelayMicroseconds: 60_000,
    });
    const [a] = await stand.send("a");
    await stand.clock.advance(5);
    expect(a?.sink.error).toMatchObject(expired);
    await stand.clock.advance(60);
    expect(stand.ran).toEqual([]);
  });

  it("is that of the level where the level has a policy of its own", async () => {
    const stand = dynamicStand({
      ...twoLevels,
      defaultQueuePolicy: rejecting,
      priorityQueuePolicy: { 1: noPolicy },
    });
    await stand.send("busy");
    const b = enqueue(stand, "b", 1);
    const a = enqueue(stand, "a", 2);
    await turn();
    await stand.clock.advance(60);
    expect([b.sink.ended, a.sink.error]).toMatchObject([false, expired]);
  });

  it("holds whatever a request asks for", async () => {
    const stand = dynamicStand({ defaultQueuePolicy: rejecting });
    await stand.send("busy");
    const hasty = stand.enqueue("hasty", undefined, { timeoutMicroseconds: 1000 });
    const a = stand.enqueue("a", undefined, { timeoutMicroseconds: 60_000 });
    await turn();
    await stand.clock.advance(4.9);
    expect(hasty.sink.ended).toBe(false);
    await stand.clock.advance(0.1);
    expect(a.sink.error).toMatchObject(expired);
  });
});

describe("allow_timeout_override", () => {
  it("lets a request ask for less time, but not for more", async () => {
    const stand = dynamicStand({
      defaultQueuePolicy: { ...rejecting, allowTimeoutOverride: true },
    });
    await stand.send("busy");
    const a = stand.enqueue("a", undefined, { timeoutMicroseconds: 1000 });
    const patient = stand.enqueue("", undefined, { timeoutMicroseconds: 60_000 });
    const silent = stand.enqueue("");
    await turn();
    await stand.clock.advance(1);
    expect(a.sink.error).toMatchObject(expired);
    expect([patient.sink.ended, silent.sink.ended]).toEqual([false, false]);
    await stand.clock.advance(4);
    expect([patient.sink.ended, silent.sink.ended]).toEqual([true, true]);
  });

  it("changes nothing where there is no default to shorten", async () => {
    const stand = dynamicStand({ defaultQueuePolicy: { ...noPolicy, allowTimeoutOverride: true } });
    await stand.send("busy");
    const a = stand.enqueue("a", undefined, { timeoutMicroseconds: 1000 });
    await turn();
    await stand.clock.advance(60);
    expect(a.sink.ended).toBe(false);
  });
});

describe("timeout_action DELAY", () => {
  it("lets those go first whose time is not over, but nobody of a lower level", async () => {
    const stand = dynamicStand({
      maxBatchSize: 1,
      ...twoLevels,
      defaultQueuePolicy: noPolicy,
      priorityQueuePolicy: { 1: delaying },
    });
    await stand.send("busy");
    enqueue(stand, "a", 1);
    enqueue(stand, "b", 1);
    await turn();
    await stand.clock.advance(5);
    enqueue(stand, "c", 2);
    enqueue(stand, "d", 1);
    await finishAll(stand);
    expect(stand.ran).toEqual(["busy", "d", "a", "b", "c"]);
  });

  it("fails nobody, and leaves no timer behind", async () => {
    const stand = dynamicStand({ maxBatchSize: 1, defaultQueuePolicy: delaying });
    const [, a] = await stand.send("busy", "a");
    await stand.clock.advance(60_000);
    expect([a?.sink.ended, stand.clock.timers]).toEqual([false, 0]);
    await finishAll(stand);
    expect(a?.sink.responses).toHaveLength(1);
    expect(stand.statistics.observe()).toMatchObject({ pending: 0, failures: { REJECTED: 0 } });
  });

  it("lets go of a delayed request that is cancelled", async () => {
    const stand = dynamicStand({ maxBatchSize: 1, defaultQueuePolicy: delaying });
    const [, a] = await stand.send("busy", "a", "b");
    await stand.clock.advance(5);
    a?.call.cancel();
    await finishAll(stand);
    expect(stand.ran).toEqual(["busy", "b"]);
    expect(a?.sink.error?.code).toBe("CANCELLED");
  });
});
