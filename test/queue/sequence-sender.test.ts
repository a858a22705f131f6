import { describe, expect, it, type TestContext } from "vitest";
import { StatusCode } from "../../protocol/error.ts";
import type { SequenceOptions } from "../../protocol/inference.ts";
import { names } from "../../queue/names.ts";
import { Presence } from "../../queue/presence.ts";
import { openStand } from "../helpers/each-stand.ts";
import { eventually } from "../helpers/eventually.ts";
import { send, type StandPoolWorker, statefulModel } from "../helpers/queue-stand.ts";
import type { SentRequest } from "../helpers/requests.ts";

const startError = {
  code: StatusCode.InvalidArg,
  message: `inference request for sequence 7 to model '${statefulModel}' must specify the START flag on the first request of the sequence`,
};

const first = { start: true } as const;
const last = { end: true } as const;
/** Until somebody who has gone silent is missed, and missed again. */
const silentMilliseconds = 10_000;

/** At the same time, because some wait more than they work. */
describe.concurrent("SequenceSender", () => {
  it("sends what follows a START to the pool worker that has it, through any gateway", async (test) => {
    const { stand, version, ask } = await opened(test);
    const workers = [await stand.poolWorker(), await stand.poolWorker(), await stand.poolWorker()];
    await answered(workers, ask("start", first));
    const [holder] = workers.filter(({ executions }) => executions.length > 0);
    const other = await stand.serve(await stand.gateway(), statefulModel);
    for (const [id, through] of [
      ["a", version],
      ["b", other],
      ["c", version],
    ] as const)
      await answered(workers, ask(id, {}, through));
    expect(holder?.executions.map(({ ids }) => ids)).toEqual(["start", "a", "b", "c"]);
  });

  it("spreads sequences over the pool workers", async (test) => {
    const { stand, ask } = await opened(test);
    const workers = [await stand.poolWorker(), await stand.poolWorker()];
    const starts = Array.from({ length: 8 }, (_, i) =>
      ask(`${i}`, { ...first, id: BigInt(i + 1) }),
    );
    await answered(workers, ...starts);
    expect(workers.map(({ executions }) => executions.length)).toEqual([4, 4]);
  });

  it("sends one request of a sequence after the other, in their order", async (test) => {
    const { stand, ask, bindings, waiting } = await opened(test);
    const worker = await stand.poolWorker();
    const all = [ask("1", first), ask("2"), ask("3"), ask("4", last)];
    const ran = (): string[] => worker.executions.map(({ ids }) => ids);
    for (let count = 1; count <= 4; count++) {
      await eventually(() => expect(ran()).toHaveLength(count));
      expect(waiting()).toBe(5 - count);
      worker.executions.at(-1)?.finish();
    }
    await answered([worker], ...all);
    expect(ran()).toEqual(["1", "2", "3", "4"]);
    await eventually(async () => expect(await bindings()).toEqual([]));
    expect(waiting()).toBe(0);
  });

  it("lets a START and what follows it wait for the first pool worker", async (test) => {
    const { stand, ask, waiting } = await opened(test);
    const sent = [ask("1", first), ask("2"), ask("3", last)];
    await eventually(() => expect(waiting()).toBe(3));
    await answered([await stand.poolWorker()], ...sent);
  });

  it("refuses what follows no START, and what follows an END", async (test) => {
    const { stand, ask } = await opened(test);
    const worker = await stand.poolWorker();
    expect(await refusalOf(ask("1"))).toMatchObject(startError);
    await answered([worker], ask("2", first), ask("3", last));
    expect(await refusalOf(ask("4"))).toMatchObject(startError);
  });

  it("ends what was open when the same id starts anew, also when that is the only request", async (test) => {
    const { stand, ask } = await opened(test);
    const workers = [await stand.poolWorker(), await stand.poolWorker()];
    await answered(workers, ask("1", first), ask("2", first), ask("3"));
    await answered(workers, ask("4", { start: true, end: true }));
    expect(await refusalOf(ask("5"))).toMatchObject(startError);
  });

  it("keeps the sequences of tenants apart", async (test) => {
    const { stand, version, ask } = await opened(test);
    const workers = [await stand.poolWorker()];
    await answered(workers, ask("1", first));
    const foreign = send(version, { id: "2", sequence: flags({}) }, "another tenant");
    expect(await refusalOf(foreign)).toMatchObject(startError);
    await answered(workers, ask("3"));
  });

  it("ends a sequence of which a request was given up before it ran", async (test) => {
    const { stand, ask, waiting } = await opened(test);
    const worker = await stand.poolWorker();
    const [begun, cancelled, behind] = [ask("1", first), ask("2"), ask("3")];
    await eventually(() => expect(worker.executions).toHaveLength(1));
    cancelled.call.cancel();
    expect(cancelled.sink.error).toMatchObject({ code: StatusCode.Cancelled });
    await answered([worker], begun);
    expect(await refusalOf(behind)).toMatchObject(startError);
    expect(await refusalOf(ask("4"))).toMatchObject(startError);
    expect(worker.executions).toHaveLength(1);
    expect(waiting()).toBe(0);
  });

  it("answers a START whose time is over before there is a pool worker, and what follows it", async (test) => {
    const { version, ask, waiting } = await opened(test);
    const late = send(version, { sequence: flags(first), timeoutMicroseconds: 50_000 });
    const behind = ask("2");
    expect((await refusalOf(late)).message).toContain("Request timeout expired");
    expect(await refusalOf(behind)).toMatchObject(startError);
    expect(waiting()).toBe(0);
    expect(version.scheduler.inflight).toBe(0);
  });

  it("gives a START to another pool worker when the first one is gone", async (test) => {
    const { stand, ask, addGhost, envelopes, bindings, waiting } = await opened(test);
    await addGhost();
    const sent = ask("1", first);
    await eventually(async () => expect(await bindings()).toEqual(["ghost"]));
    await eventually(async () => expect(await envelopes()).toHaveLength(1));
    const [taken = ""] = await envelopes();
    await stand.commands.hset(taken, "taken", 1);
    const worker = await stand.poolWorker();
    await eventually(() => expect(worker.executions).toHaveLength(1), silentMilliseconds);
    await answered([worker], sent, ask("2"));
    expect(waiting()).toBe(0);
    await eventually(async () => expect(await envelopes()).toEqual([]));
  });

  it("tells who goes on with a sequence that its pool worker is gone", async (test) => {
    const { stand, ask, addGhost, waiting } = await opened(test);
    const worker = await stand.poolWorker();
    await answered([worker], ask("1", first));
    await addGhost();
    const [key = ""] = await stand.commands.keys(names.sequence(stand.pool, "*"));
    await stand.commands.hset(key, "worker", "ghost");
    const [lost, behind] = [ask("2"), ask("3")];
    expect(await refusalOf(lost)).toMatchObject(startError);
    expect(await refusalOf(behind)).toMatchObject(startError);
    await answered([worker], ask("4", first));
    expect(waiting()).toBe(0);
  });

  it("answers what Redis has lost, and starts again what can be", async (test) => {
    const { stand, gateway, ask, addGhost, bindings } = await opened(test);
    const stopped = await stand.poolWorker();
    await answered([stopped], ask("1", first));
    await stopped.close();
    await addGhost();
    const start = ask("2", { ...first, id: 8n });
    await eventually(async () => expect(await bindings()).toContain("ghost"));
    await stand.commands.flushall();
    const worker = await stand.poolWorker();
    await stand.serve(gateway, statefulModel);
    await answered([worker], start);
    expect(await refusalOf(ask("3"))).toMatchObject(startError);
  });
});

/** A stand with a model that has sequences, and what its tests ask of it. */
async function opened(test: TestContext) {
  const stand = await openStand(test);
  const gateway = await stand.gateway();
  const version = await stand.serve(gateway, statefulModel);
  return {
    stand,
    gateway,
    version,
    ask: (id: string, more: Partial<SequenceOptions> = {}, through = version): SentRequest =>
      send(through, { id, sequence: flags(more) }),
    /** A pool worker that says once that it is there, and never reads. */
    addGhost: async (): Promise<void> => {
      const word = {
        id: "ghost",
        state: "ready",
        inFlight: 0,
        startedAt: 0,
        resident: [],
      } as const;
      await new Presence(stand.pool, stand.commands).say({ ...word, sequences: 0 }, Date.now());
    },
    envelopes: (): Promise<string[]> => stand.commands.keys(names.envelope(stand.pool, "*")),
    /** Pool workers that have sequences, one for each. */
    bindings: async (): Promise<unknown[]> => {
      const keys = await stand.commands.keys(names.sequence(stand.pool, "*"));
      return Promise.all(keys.map((key) => stand.commands.hget(key, "worker")));
    },
    /** Requests that the pool's autoscaler hears of. */
    waiting: (): number | undefined => gateway.versions.links[0]?.meter.waiting,
  };
}

function flags(more: Partial<SequenceOptions>): SequenceOptions {
  return { id: 7n, start: false, end: false, ...more };
}

/** Lets the pool workers finish what they have until each request has its answer. */
async function answered(
  workers: readonly StandPoolWorker[],
  ...sent: readonly SentRequest[]
): Promise<void> {
  await eventually(() => {
    for (const execution of workers.flatMap(({ executions }) => executions)) finish(execution);
    expect(sent.every(({ sink }) => sink.ended)).toBe(true);
  });
  for (const { sink } of sent) {
    expect(sink.error).toBeUndefined();
    expect(sink.responses).toHaveLength(1);
  }
}

const finished = new WeakSet<object>();

function finish(execution: StandPoolWorker["executions"][number]): void {
  if (finished.has(execution)) return;
  finished.add(execution);
  execution.finish();
}

async function refusalOf({ sink }: SentRequest): Promise<Error> {
  await eventually(() => expect(sink.ended).toBe(true), silentMilliseconds);
  if (!sink.error) throw new Error("it was answered");
  return sink.error;
}
