import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { Demand } from "../../queue/demand.ts";
import { names } from "../../queue/names.ts";
import { Openings } from "../../queue/openings.ts";
import { openPoolLink, openQueue } from "../../queue/pool-link.ts";
import { ticketOf } from "../../queue/version-ticket.ts";
import { systemClock } from "../../serving/clock.ts";
import { eachStand } from "../helpers/each-stand.ts";
import { eventually } from "../helpers/eventually.ts";
import { keyOf, type QueueStand, send, sourceOf } from "../helpers/queue-stand.ts";

describe("Openings", () => {
  let stand: QueueStand;
  eachStand((opened) => {
    stand = opened;
  });

  it("wakes one pool worker once, although two gateways ask at the same time", async () => {
    const gate = Promise.withResolvers<void>();
    const workers = [
      await stand.poolWorker({ starting: () => gate.promise }),
      await stand.poolWorker({ starting: () => gate.promise }),
    ];
    const gateways = [await stand.gateway(), await stand.gateway()];
    const starts = gateways.map(({ versions }) => versions.start(sourceOf("echo"), 0));
    await eventually(async () => expect(await demand()).toBe(2));
    await eventually(() => expect(workers.flatMap(({ started }) => started)).toEqual(["echo"]));
    gate.resolve();
    const versions = await Promise.all(starts);
    expect(versions.map(({ model }) => model.config.input[0]?.name)).toEqual(["IN", "IN"]);
    expect(workers.flatMap(({ started }) => started)).toEqual(["echo"]);
    await eventually(async () => expect(await demand()).toBe(0));
  });

  it("describes a version without any pool worker once one has started it", async () => {
    const worker = await stand.poolWorker();
    const first = await stand.gateway();
    await first.versions.start(sourceOf("echo"), 0);
    await worker.close();
    const later = await stand.gateway();
    const version = await later.versions.start(sourceOf("echo"), 0);
    expect(version.model.config.input[0]?.name).toBe("IN");
  });

  it("tells every gateway why a version cannot be started, and asks again a while later", async () => {
    let broken = true;
    const worker = await stand.poolWorker({
      starting: async (model) => {
        if (broken) throw new InferenceError(StatusCode.InvalidArg, `${model} is broken`);
      },
    });
    const gateways = [await stand.gateway(), await stand.gateway()];
    const starts = gateways.map(({ versions }) => versions.start(sourceOf("echo"), 0));
    for (const { reason } of await settled(starts))
      expect(reason).toMatchObject({ code: StatusCode.InvalidArg, message: "echo is broken" });
    expect(worker.started).toEqual(["echo"]);
    broken = false;
    await eventually(() => gateways[0]?.versions.start(sourceOf("echo"), 0));
    expect(worker.started).toEqual(["echo", "echo"]);
  });

  it("starts a version anew for each load on request", async () => {
    const worker = await stand.poolWorker();
    const { versions } = await stand.gateway();
    await versions.start(sourceOf("echo"), 1);
    await versions.start(sourceOf("echo"), 2);
    await versions.start(sourceOf("echo"), 2);
    expect(worker.started).toEqual(["echo", "echo"]);
  });

  it("asks again when Redis has lost the job", async () => {
    const { versions } = await stand.gateway();
    const start = versions.start(sourceOf("echo"), 0);
    const queue = openQueue(stand.pool, stand.commands);
    await eventually(async () => expect(await queue.remove(`open-${keyOf("echo")}`)).toBe(1));
    await queue.close();
    await stand.poolWorker();
    expect((await start).model.name).toBe("echo");
  });

  it("waits for a pool worker for a bounded time where an upload is to be opened", async () => {
    const { name: gateway, redis } = await stand.gateway();
    const { pool, commands } = stand;
    const { subscriber } = redis;
    const own = { pool, gateway, commands, subscriber };
    const link = await openPoolLink({ ...own, targetInFlight: 1, clock: systemClock });
    const openings = new Openings({ ...link, commands, uploadPatienceMilliseconds: 100 });
    const open = (more: object): Promise<unknown> => {
      const source = { ...sourceOf("echo"), ...more };
      return openings.open(keyOf("echo"), ticketOf(source, 0), source);
    };
    await expect(open({ staged: "u" })).rejects.toMatchObject({
      code: StatusCode.Unavailable,
      message: expect.stringMatching(/no pool worker has come in 0.1 seconds .* push again/u),
    });
    const gate = Promise.withResolvers<void>();
    const served = open({});
    const worker = await stand.poolWorker({ starting: () => gate.promise });
    await eventually(() => expect(worker.started).toEqual(["echo"]));
    const pushed = open({ staged: "u" });
    // Longer than the patience: what is slow and attended is not given up.
    await sleep(1200);
    gate.resolve();
    await expect(Promise.all([served, pushed])).resolves.toMatchObject([{}, { name: "echo" }]);
    await link.close();
  });

  it("keeps what pool workers must know, although Redis has lost it", async () => {
    const gateway = await stand.gateway();
    const version = await stand.serve(gateway);
    await stand.commands.unlink(names.ticket(stand.pool, keyOf("echo")));
    await eventually(async () =>
      expect(await stand.commands.exists(names.ticket(stand.pool, keyOf("echo")))).toBe(1),
    );
    const worker = await stand.poolWorker();
    const sent = send(version);
    await eventually(() => expect(worker.executions).toHaveLength(1));
    worker.executions[0]?.finish();
    await eventually(() => expect(sent.sink.responses).toHaveLength(1));
  });

  async function demand(): Promise<number> {
    const { requests } = await new Demand(stand.pool, stand.commands).total(Date.now());
    return requests;
  }
});

async function settled(starts: readonly Promise<unknown>[]): Promise<PromiseRejectedResult[]> {
  const all = await Promise.allSettled(starts);
  const rejected = all.filter((one) => one.status === "rejected");
  expect(rejected).toHaveLength(starts.length);
  return rejected;
}
