import { afterEach, describe, expect, it } from "vitest";
import { StatusCode } from "../../protocol/error.ts";
import { names, queueName } from "../../queue/names.ts";
import { markedJobId, tenantMark } from "../../queue/tenant-mark.ts";
import { eventually } from "../helpers/eventually.ts";
import { QueueStand, type StandGateway, send, sourceOf } from "../helpers/queue-stand.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";
import type { SentRequest } from "../helpers/requests.ts";

describe("the queue, when Redis goes away", () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    // oxlint-disable-next-line no-await-in-loop -- the last first: servers go after those that use them
    for (const close of closing.splice(0).toReversed()) await close();
  });

  it("has requests answered that waited in it, when it comes back with its data", async () => {
    const { redis, stand } = await start(true);
    const gateway = await stand.gateway();
    const version = await stand.serve(gateway);
    const sent = [send(version), send(version)];
    await untilSent(stand, gateway);
    await redis.kill();
    await redis.restart();
    const worker = await stand.poolWorker();
    await finishAll(worker, sent);
    expect(sent.map(({ sink }) => sink.responses.length)).toEqual([1, 1]);
    expect(worker.executions).toHaveLength(2);
  });

  it("has a request answered once whose answer was due while Redis was away", async () => {
    const { redis, stand } = await start(true);
    const worker = await stand.poolWorker();
    const version = await stand.serve(await stand.gateway());
    const sent = send(version);
    await eventually(() => expect(worker.executions).toHaveLength(1));
    await redis.kill();
    worker.executions[0]?.finish();
    await redis.restart();
    await finishAll(worker, [sent]);
    expect(sent.sink.responses).toHaveLength(1);
    expect(worker.executions).toHaveLength(1);
    const next = send(version);
    await finishAll(worker, [next]);
    expect(next.sink.responses).toHaveLength(1);
    expect(sent.sink.responses).toHaveLength(1);
  });

  it("has requests answered once although Redis has lost them", async () => {
    const { redis, stand } = await start(false);
    const gateway = await stand.gateway();
    const version = await stand.serve(gateway);
    const waiting = send(version);
    await untilSent(stand, gateway);
    await redis.kill();
    await redis.restart();
    const worker = await stand.poolWorker();
    await eventually(() => gateway.redis.commands.ping());
    const later = send(version);
    await finishAll(worker, [waiting, later]);
    for (const { sink } of [waiting, later]) {
      expect(sink.error).toBeUndefined();
      expect(sink.responses).toHaveLength(1);
    }
    expect(worker.executions).toHaveLength(2);
    expect(version.scheduler.inflight).toBe(0);
  });

  it("refuses new requests and new versions at once while Redis is away", async () => {
    const { redis, stand } = await start(false);
    const gateway = await stand.gateway();
    const version = await stand.serve(gateway);
    await redis.kill();
    const began = performance.now();
    await expect(gateway.versions.start(sourceOf("other"), 0)).rejects.toMatchObject({
      code: StatusCode.Unavailable,
    });
    const sent = send(version);
    await eventually(() => expect(sent.sink.error).toMatchObject({ code: StatusCode.Unavailable }));
    expect(performance.now() - began).toBeLessThan(5000);
    expect(version.scheduler.inflight).toBe(0);
    const late = send(version, { timeoutMicroseconds: 1 });
    late.call.cancel();
    await eventually(() => expect(late.sink.ended).toBe(true));
    expect(gateway.versions.links[0]?.meter.waiting).toBe(0);
    await redis.restart();
  });

  it("goes on with a job that a pool worker could not read because Redis was away", async () => {
    const { redis, stand } = await start(true);
    const gate = Promise.withResolvers<void>();
    const worker = await stand.poolWorker({ starting: () => gate.promise });
    const version = await stand.serve(await stand.gateway());
    const sent = send(version);
    await eventually(() => expect(worker.started).toEqual(["echo"]));
    await redis.kill();
    // It is about to take the envelope now.
    gate.resolve();
    await eventually(() => expect(worker.versions.loaded().size).toBe(1));
    await redis.restart();
    await finishAll(worker, [sent]);
    expect(sent.sink.responses).toHaveLength(1);
  });

  async function start(appendOnly: boolean): Promise<{ redis: RedisServer; stand: QueueStand }> {
    const redis = await startRedis({ appendOnly });
    closing.push(() => redis.stop());
    const stand = await QueueStand.open(redis.url);
    closing.push(() => stand.close());
    return { redis, stand };
  }
});

/** Ends executions as they come, until all requests are answered. */
async function finishAll(
  worker: Awaited<ReturnType<QueueStand["poolWorker"]>>,
  sent: readonly SentRequest[],
): Promise<void> {
  let finished = 0;
  await eventually(() => {
    for (; finished < worker.executions.length; finished++) worker.executions[finished]?.finish();
    expect(sent.every(({ sink }) => sink.ended)).toBe(true);
  });
}

/** The gateway knows that its first envelope and the envelope's job are in Redis. */
async function untilSent({ pool, commands }: QueueStand, gateway: StandGateway): Promise<void> {
  const job = `${names.queuePrefix(pool)}:${queueName}:${markedJobId(`${gateway.name}-0`, tenantMark("default"))}`;
  await eventually(async () => expect(await commands.exists(job)).toBe(1));
  // Its answer comes behind the one to the job.
  await gateway.redis.commands.ping();
}
