import { describe, expect, it } from "vitest";
import { names } from "../../queue/names.ts";
import type { RunningVersion } from "../../serving/running-version.ts";
import { eachStand } from "../helpers/each-stand.ts";
import { eventually } from "../helpers/eventually.ts";
import {
  keyOf,
  type QueueStand,
  send,
  type StandGateway,
  type StandPoolWorker,
} from "../helpers/queue-stand.ts";

describe("StatisticsBoard", () => {
  let stand: QueueStand;
  let gateway: StandGateway;
  let version: RunningVersion;
  eachStand(async (opened) => {
    stand = opened;
    gateway = await stand.gateway();
    version = await stand.serve(gateway);
  });

  it("has counted a request when its reply can be read", async () => {
    const worker = await stand.poolWorker();
    for (let count = 1; count <= 20; count++) {
      await answer(worker);
      expect(await counts()).toEqual([count, count]);
    }
  });

  it("sums over pool workers that are gone and gateways", async () => {
    const other = await stand.gateway();
    const same = await stand.serve(other);
    const first = await stand.poolWorker();
    await answer(first);
    await answer(first);
    await first.close();
    const second = await stand.poolWorker();
    await answer(second);
    const late = send(same, { timeoutMicroseconds: 1 });
    await eventually(() => expect(late.sink.ended).toBe(true));
    await eventually(async () => {
      const { success, failures } = await version.statistics.observe();
      expect({ success, rejected: failures.REJECTED }).toEqual({ success: 3, rejected: 1 });
    });
    expect((await version.statistics.snapshot()).inferenceStats.fail.count).toBe(1);
    expect(await counts()).toEqual([3, 3]);
  });

  it("keeps what a pool worker has counted when a version comes and goes in it", async () => {
    const worker = await stand.poolWorker();
    for (let count = 1; count <= 4; count++) {
      await answer(worker);
      expect(await counts()).toEqual([count, count]);
      worker.versions.retire(keyOf("echo"));
    }
    expect(worker.started).toHaveLength(4);
  });

  it("counts what a version answers while it leaves a pool worker", async () => {
    const worker = await stand.poolWorker();
    const sent = send(version);
    await eventually(() => expect(worker.executions).toHaveLength(1));
    worker.versions.retire(keyOf("echo"));
    worker.executions[0]?.finish();
    await eventually(() => expect(sent.sink.ended).toBe(true));
    expect(await counts()).toEqual([1, 1]);
  });

  it("starts from zero for another load of the same model", async () => {
    const worker = await stand.poolWorker();
    await answer(worker);
    version = await stand.serve(gateway, "echo", 1);
    expect(await counts()).toEqual([0, 0]);
    await answer(worker);
    expect(await counts()).toEqual([1, 1]);
  });

  it("adds up those that are gone, and nobody else, without changing the sum", async () => {
    const other = await stand.gateway();
    const late = send(await stand.serve(other), { timeoutMicroseconds: 1 });
    await eventually(() => expect(late.sink.ended).toBe(true));
    for (let i = 0; i < 9; i++) {
      const worker = await stand.poolWorker();
      await answer(worker);
      await worker.close();
    }
    const staying = await stand.poolWorker();
    await answer(staying);
    const key = names.statistics(stand.pool, keyOf("echo"));
    await eventually(async () => expect(await stand.commands.hlen(key)).toBe(11));
    await eventually(async () => {
      // One of the two holds the lease by now.
      for (const { versions } of [gateway, other]) await versions.foldStatistics(Date.now());
      const counted = await stand.commands.hkeys(key);
      expect(new Set(counted)).toEqual(new Set(["gone", staying.name, other.name]));
    });
    expect(await counts()).toEqual([10, 10]);
    await answer(staying);
    expect(await counts()).toEqual([11, 11]);
  });

  it("leaves those alone that have counted of late, even when they seem to be gone", async () => {
    for (let i = 0; i < 9; i++) {
      const worker = await stand.poolWorker();
      await answer(worker);
      await worker.close();
    }
    const key = names.statistics(stand.pool, keyOf("echo"));
    await eventually(async () =>
      expect(await stand.commands.exists(names.statisticsLease)).toBe(1),
    );
    await gateway.versions.foldStatistics(Date.now() - 600_000);
    expect(await stand.commands.hlen(key)).toBe(9);
  });

  /** Has a pool worker answer one request. */
  async function answer(worker: StandPoolWorker): Promise<void> {
    const before = worker.executions.length;
    const sent = send(version);
    await eventually(() => expect(worker.executions).toHaveLength(before + 1));
    worker.executions[before]?.finish();
    await eventually(() => expect(sent.sink.ended).toBe(true));
    expect(sent.sink.error).toBeUndefined();
  }

  async function counts(): Promise<[success: number, executions: number]> {
    const { executionCount, inferenceStats } = await version.statistics.snapshot();
    return [inferenceStats.success.count, executionCount];
  }
});
