import { describe, expect, it } from "vitest";
import { StatusCode } from "../../protocol/error.ts";
import { readEnvelope } from "../../queue/envelope.ts";
import { openQueue } from "../../queue/pool-link.ts";
import { names } from "../../queue/names.ts";
import type { RunningVersion } from "../../serving/running-version.ts";
import type { FailureReason } from "../../telemetry/model-observation.ts";
import { eachStand } from "../helpers/each-stand.ts";
import { eventually } from "../helpers/eventually.ts";
import {
  hastyModel,
  keyOf,
  openEnvelopes,
  type QueueStand,
  send,
  type StandGateway,
  type StandPoolWorker,
} from "../helpers/queue-stand.ts";
import type { SentRequest } from "../helpers/requests.ts";

/** In microseconds, of requests that are to run out of time. */
const soon = 50_000;

describe("RemoteScheduler", () => {
  let stand: QueueStand;
  let gateway: StandGateway;
  let version: RunningVersion;
  eachStand(async (opened) => {
    stand = opened;
    gateway = await stand.gateway();
    version = await stand.serve(gateway);
  });

  it("takes a cancelled request out of Redis before any pool worker sees it", async () => {
    const sent = send(version);
    await inRedis(1);
    sent.call.cancel();
    expect(sent.sink.error).toMatchObject({ code: StatusCode.Cancelled });
    await nothingInRedis();
    await counted("CANCELED", 1);
    const worker = await stand.poolWorker();
    const next = send(version, { id: "next" });
    await eventually(() => expect(worker.executions.map(({ ids }) => ids)).toEqual(["next"]));
    worker.executions[0]?.finish();
    await answered(next);
    expect(await version.statistics.snapshot()).toMatchObject({ executionCount: 1 });
    await counted("CANCELED", 1);
  });

  it("leaves the others of an envelope when one is cancelled", async () => {
    const [first, second] = [send(version, { id: "first" }), send(version, { id: "second" })];
    await inRedis(2);
    first.call.cancel();
    await inRedis(1);
    const worker = await stand.poolWorker();
    await eventually(() => expect(worker.executions.map(({ ids }) => ids)).toEqual(["second"]));
    worker.executions[0]?.finish();
    await answered(second);
  });

  it("takes a cancelled request's bytes out of Redis at once, whether or not anybody has taken it", async () => {
    const idsInRedis = async (): Promise<(readonly string[])[]> => {
      const queue = openQueue(stand.pool, stand.commands);
      const waiting = await queue.getJobs();
      await queue.close();
      return waiting
        .map(({ data: { bundle, model } }) => {
          const { requests } = readEnvelope(Buffer.from(bundle, "base64"), model);
          return [...requests.values()].map(({ request }) => request.id);
        })
        .toSorted((a, b) => String(a).localeCompare(String(b)));
    };
    const all = ["a", "b", "c"].map((id) => send(version, { id }));
    await inRedis(3);
    all[0]?.call.cancel();
    await eventually(async () => expect(await idsInRedis()).toEqual([["b", "c"]]));
    const worker = await stand.poolWorker();
    for (const i of [0, 1]) {
      await eventually(() => expect(worker.executions).toHaveLength(i + 1));
      worker.executions[i]?.finish();
    }
    await nothingInRedis();
    const more = ["d", "e", "f"].map((id) => send(version, { id }));
    await eventually(() => expect(inHand(worker)).toBe(3));
    more[1]?.call.cancel();
    await eventually(async () => expect(await idsInRedis()).toEqual([["d", "f"]]));
    for (const { call } of more) call.cancel();
    await eventually(() => expect(inHand(worker)).toBe(1));
    worker.executions[2]?.finish();
    await nothingInRedis();
  });

  it("keeps the turn of the others of an envelope when one is cancelled", async () => {
    const finishes = async (): Promise<number[]> => {
      const queue = openQueue(stand.pool, stand.commands);
      const waiting = await queue.getPrioritized();
      await queue.close();
      return waiting.map(({ data }) => data.finish);
    };
    const all = ["a", "b", "c"].map((id) => send(version, { id }));
    await eventually(async () => expect(await finishes()).toEqual([3]));
    const later = send(version, { id: "later" });
    await eventually(async () => expect(await finishes()).toEqual([3, 4]));
    all[0]?.call.cancel();
    await eventually(async () => expect(await openEnvelopes(stand)).toEqual([1, 2]));
    expect(await finishes()).toEqual([3, 4]);
    const worker = await stand.poolWorker();
    for (const [i, sent] of [...all.slice(1), later].entries()) {
      await eventually(() => expect(worker.executions).toHaveLength(i + 1));
      worker.executions[i]?.finish();
      await answered(sent);
    }
    expect(worker.executions.map(({ ids }) => ids)).toEqual(["b", "c", "later"]);
  });

  it("takes envelope and job out of Redis when all of its requests are cancelled at once", async () => {
    const all = [send(version), send(version), send(version)];
    await inRedis(3);
    for (const { call } of all) call.cancel();
    expect(version.scheduler.inflight).toBe(0);
    await nothingInRedis();
    await counted("CANCELED", 3);
  });

  it("takes a cancelled request out of the scheduler of the pool worker that has it", async () => {
    const worker = await stand.poolWorker();
    const running = send(version, { id: "running" });
    await eventually(() => expect(worker.executions).toHaveLength(1));
    const waiting = send(version, { id: "waiting" });
    await eventually(() => expect(inHand(worker)).toBe(2));
    waiting.call.cancel();
    expect(waiting.sink.error).toMatchObject({ code: StatusCode.Cancelled });
    await eventually(() => expect(inHand(worker)).toBe(1));
    worker.executions[0]?.finish();
    await answered(running);
    await counted("CANCELED", 1);
    expect(worker.executions).toHaveLength(1);
    expect(await version.statistics.snapshot()).toMatchObject({ executionCount: 1 });
  });

  it("answers a request at once that is cancelled while it runs", async () => {
    const worker = await stand.poolWorker();
    const running = send(version);
    await eventually(() => expect(worker.executions).toHaveLength(1));
    running.call.cancel();
    expect(running.sink.error).toMatchObject({ code: StatusCode.Cancelled });
    expect(version.scheduler.inflight).toBe(0);
    worker.executions[0]?.finish();
    await nothingInRedis();
    expect(running.sink.responses).toEqual([]);
    await counted("CANCELED", 0);
  });

  it("tells a pool worker of a request that is cancelled while its version starts", async () => {
    const gate = Promise.withResolvers<void>();
    const worker = await stand.poolWorker({ starting: () => gate.promise });
    const [gone, kept] = [send(version, { id: "gone" }), send(version, { id: "kept" })];
    await eventually(() => expect(worker.started).toEqual(["echo"]));
    gone.call.cancel();
    await counted("CANCELED", 1);
    gate.resolve();
    await eventually(() => expect(worker.executions.map(({ ids }) => ids)).toEqual(["kept"]));
    worker.executions[0]?.finish();
    await answered(kept);
  });

  it("answers a request whose time is over before any pool worker takes it", async () => {
    const all = [1, 2, 3].map((i) => send(version, { id: `${i}`, timeoutMicroseconds: soon }));
    await eventually(() => expect(all.every(({ sink }) => sink.ended)).toBe(true));
    for (const { sink } of all) {
      expect(sink.error).toMatchObject({ code: StatusCode.Unavailable });
      expect(sink.error?.message).toContain("Request timeout expired");
    }
    await nothingInRedis();
    await counted("REJECTED", 3);
    expect(version.scheduler.inflight).toBe(0);
  });

  it("gives a request the time that its model's queue policy gives it, whatever it asks for", async () => {
    const policed = await stand.serve(gateway, hastyModel);
    const delayed = send(policed, { id: "delayed", priority: 1 });
    const rejected = send(policed, { id: "rejected", timeoutMicroseconds: 60_000_000 });
    await eventually(() =>
      expect(rejected.sink.error?.message).toContain("Request timeout expired"),
    );
    const worker = await stand.poolWorker();
    await eventually(() => expect(worker.executions.map(({ ids }) => ids)).toEqual(["delayed"]));
    worker.executions[0]?.finish();
    await answered(delayed);
  });

  it("answers a request whose time is over while its version starts", async () => {
    const gate = Promise.withResolvers<void>();
    const worker = await stand.poolWorker({ starting: () => gate.promise });
    const sent = send(version, { timeoutMicroseconds: soon });
    await eventually(() => expect(worker.started).toEqual(["echo"]));
    await eventually(() => expect(sent.sink.error?.message).toContain("Request timeout expired"));
    gate.resolve();
    await nothingInRedis();
    expect(worker.executions).toEqual([]);
    await counted("REJECTED", 1);
  });

  it("leaves it to the pool worker when a request is too late that waits there", async () => {
    const worker = await stand.poolWorker();
    const running = send(version, { id: "running" });
    await eventually(() => expect(worker.executions).toHaveLength(1));
    const late = send(version, { id: "late", timeoutMicroseconds: soon });
    await eventually(() => expect(late.sink.error?.message).toContain("Request timeout expired"));
    expect(running.sink.ended).toBe(false);
    worker.executions[0]?.finish();
    await answered(running);
    await counted("REJECTED", 1);
    expect(worker.executions).toHaveLength(1);
  });

  it("lets a request run on that was begun before its time was over", async () => {
    const worker = await stand.poolWorker();
    const sent = send(version, { timeoutMicroseconds: soon });
    await eventually(() => expect(worker.executions).toHaveLength(1));
    const other = send(version, { timeoutMicroseconds: soon });
    await eventually(() => expect(other.sink.ended).toBe(true));
    worker.executions[0]?.finish();
    await answered(sent);
  });

  it("answers a request once that is cancelled just as its time is over", async () => {
    const sent = send(version, { timeoutMicroseconds: soon });
    await inRedis(1);
    await eventually(() => expect(performance.now() - sent.enqueuedAt).toBeGreaterThan(49));
    while (performance.now() - sent.enqueuedAt < 50.2) await Promise.resolve();
    // The look for those out of time is on its way to Redis, or about to be.
    await new Promise((resolve) => setImmediate(resolve));
    sent.call.cancel();
    await nothingInRedis();
    await eventually(() => expect(version.scheduler.inflight).toBe(0));
    expect(gateway.versions.links[0]?.meter.waiting).toBe(0);
  });

  it("refuses requests once it stops, and ends with the last answer", async () => {
    const worker = await stand.poolWorker();
    const sent = send(version);
    await eventually(() => expect(worker.executions).toHaveLength(1));
    let stopped = false;
    const stopping = version.scheduler.stop().then(() => (stopped = true));
    const refused = send(version, { id: "r" });
    expect(refused.sink.error?.message).toBe("[request id: r] model 'echo' is being unloaded");
    expect(stopped).toBe(false);
    worker.executions[0]?.finish();
    await stopping;
    await answered(sent);
  });

  async function inRedis(requests: number): Promise<void> {
    await eventually(async () => expect(await openEnvelopes(stand)).toEqual([requests]));
  }

  /** No envelope, no job, and no replies that nobody has read. */
  async function nothingInRedis(): Promise<void> {
    await eventually(async () => {
      expect(await stand.commands.keys(names.envelope(stand.pool, "*"))).toEqual([]);
      expect(await jobs()).toBe(0);
      expect(await stand.commands.llen(names.replies(gateway.name))).toBe(0);
    });
  }

  async function jobs(): Promise<number> {
    const queue = openQueue(stand.pool, stand.commands);
    const counts = await queue.getJobCounts();
    await queue.close();
    return Object.values(counts).reduce((sum, count) => sum + count, 0);
  }

  async function counted(reason: FailureReason, count: number): Promise<void> {
    await eventually(async () => {
      const { failures } = await version.statistics.observe();
      expect(failures[reason]).toBe(count);
    });
  }
});

/** Requests that a pool worker's scheduler has. */
function inHand({ versions }: StandPoolWorker): number | undefined {
  return versions.loaded().get(keyOf("echo"))?.scheduler.inflight;
}

async function answered({ sink }: SentRequest): Promise<void> {
  await eventually(() => expect(sink.ended).toBe(true));
  expect(sink.error).toBeUndefined();
  expect(sink.responses).toHaveLength(1);
}
