import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { RunningVersion } from "../../serving/running-version.ts";
import { eachStand } from "../helpers/each-stand.ts";
import { eventually } from "../helpers/eventually.ts";
import {
  openEnvelopes,
  type QueueStand,
  send,
  type StandPoolWorker,
} from "../helpers/queue-stand.ts";

const flooded = 10_000;

describe("a pool that tenants share", () => {
  let stand: QueueStand;
  eachStand((opened) => {
    stand = opened;
  });

  it("answers one that asks now and then while another's flood waits, whoever sends what", async () => {
    const versions = [await serve(), await serve()] as const;
    const [first, second] = versions;
    const flood = Array.from({ length: flooded }, () => send(first, {}, "flood"));
    await eventually(async () => expect((await openEnvelopes(stand)).length).toBeGreaterThan(150));
    const worker = await stand.poolWorker();
    const stop = finishOneByOne(worker);
    await eventually(() => expect(worker.executions.length).toBeGreaterThan(200));
    const passed: number[] = [];
    for (let i = 0; i < 20; i++) {
      const sent = send(versions[i % 2] ?? second, { id: "calm" }, "calm");
      const before = worker.executions.length;
      await eventually(() => expect(sent.sink.ended).toBe(true));
      expect(sent.sink.error).toBeUndefined();
      passed.push(worker.executions.slice(before).findIndex(({ ids }) => ids === "calm"));
    }
    // A few run while it is on its way, but not even those of one envelope: let alone all that came before it.
    const median = passed.toSorted((a, b) => a - b)[passed.length / 2];
    expect(median).toBeLessThan(32);
    expect(Math.max(...passed)).toBeLessThan(flooded / 20);
    for (const { call } of flood) call.cancel();
    await eventually(async () => expect(await openEnvelopes(stand)).toEqual([]));
    stop();
  });

  it("takes no more ahead than a few batches, whatever waits", async () => {
    const version = await serve();
    const flood = Array.from({ length: 2000 }, () => send(version, {}, "flood"));
    const worker = await stand.poolWorker({ concurrency: 4 });
    await eventually(() => expect(worker.executions).toHaveLength(1));
    // As many looks as it may take to take more.
    await sleep(200);
    const [loaded] = worker.versions.loaded().values();
    expect(loaded?.scheduler.inflight).toBeLessThanOrEqual(4 * 32 + 64);
    for (const { call } of flood) call.cancel();
    const stop = finishOneByOne(worker);
    await eventually(async () => expect(await openEnvelopes(stand)).toEqual([]));
    stop();
  });

  async function serve(): Promise<RunningVersion> {
    return stand.serve(await stand.gateway());
  }
});

/** Each execution takes a millisecond or so. */
function finishOneByOne(worker: StandPoolWorker): () => void {
  let finished = 0;
  const timer = setInterval(() => {
    const { executions } = worker;
    executions[finished]?.finish();
    if (finished < executions.length) finished++;
  }, 1);
  return () => clearInterval(timer);
}
