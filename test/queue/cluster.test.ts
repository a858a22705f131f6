import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { StatusCode } from "../../protocol/error.ts";
import { endProcess } from "../helpers/end-process.ts";
import { eventually } from "../helpers/eventually.ts";
import {
  openEnvelopes,
  QueueStand,
  send,
  type StandPoolWorker,
  sourceOf,
} from "../helpers/queue-stand.ts";
import { type RedisCluster, startRedisCluster } from "../helpers/redis-cluster.ts";
import type { SentRequest } from "../helpers/requests.ts";

const program = path.join(import.meta.dirname, "dying-pool-worker.ts");

describe("the queue on a Redis Cluster of three", () => {
  let cluster: RedisCluster;
  let stand: QueueStand;
  let child: ChildProcess | undefined;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  beforeEach(async () => {
    stand = await QueueStand.open(cluster.url);
  });
  afterEach(async () => {
    if (child) await endProcess(child);
    child = undefined;
    await stand.close();
  });
  afterAll(() => cluster.stop());

  it("starts versions, answers requests, and counts them before", async () => {
    const worker = await stand.poolWorker();
    const gateways = [await stand.gateway(), await stand.gateway(), await stand.gateway()];
    const versions = await Promise.all(
      gateways.map((gateway) => gateway.versions.start(sourceOf("echo"), 0)),
    );
    expect(worker.started).toEqual(["echo"]);
    for (let i = 0; i < 9; i++) {
      const version = versions[i % versions.length];
      if (!version) continue;
      await answer(worker, send(version));
      expect((await version.statistics.snapshot()).executionCount).toBe(i + 1);
    }
  });

  it("takes cancelled requests back, from Redis and from pool workers", async () => {
    const gateway = await stand.gateway();
    const version = await stand.serve(gateway);
    const waiting = send(version);
    await eventually(async () => expect(await openEnvelopes(stand)).toEqual([1]));
    waiting.call.cancel();
    await eventually(async () => expect(await openEnvelopes(stand)).toEqual([]));
    const worker = await stand.poolWorker();
    const running = send(version, { id: "running" });
    await eventually(() => expect(worker.executions).toHaveLength(1));
    const taken = send(version, { id: "taken" });
    const [loaded] = worker.versions.loaded().values();
    await eventually(() => expect(loaded?.scheduler.inflight).toBe(2));
    taken.call.cancel();
    await eventually(() => expect(loaded?.scheduler.inflight).toBe(1));
    worker.executions[0]?.finish();
    await eventually(() => expect(running.sink.responses).toHaveLength(1));
    expect(waiting.sink.error).toMatchObject({ code: StatusCode.Cancelled });
    await eventually(async () =>
      expect((await version.statistics.observe()).failures.CANCELED).toBe(2),
    );
    expect(worker.executions).toHaveLength(1);
  });

  it("takes over what a pool worker had that was killed", async () => {
    const version = await stand.serve(await stand.gateway());
    const dying = spawn(process.execPath, [program, cluster.url, stand.pool], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    child = dying;
    await once(dying.stdout, "data");
    const sent = send(version, { id: "kill" });
    await once(dying, "exit");
    await answer(await stand.poolWorker(), sent);
    expect(version.scheduler.inflight).toBe(0);
  });
});

async function answer(worker: StandPoolWorker, sent: SentRequest): Promise<void> {
  const before = worker.executions.length;
  await eventually(() => expect(worker.executions).toHaveLength(before + 1));
  worker.executions[before]?.finish();
  await eventually(() => expect(sent.sink.ended).toBe(true));
  expect(sent.sink.error).toBeUndefined();
  expect(sent.sink.responses).toHaveLength(1);
}
