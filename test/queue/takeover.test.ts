import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { describe, expect, it, type TestContext, vi } from "vitest";
import { StatusCode } from "../../protocol/error.ts";
import { names } from "../../queue/names.ts";
import type { RunningVersion } from "../../serving/running-version.ts";
import { endProcess } from "../helpers/end-process.ts";
import { openStand } from "../helpers/each-stand.ts";
import { eventually } from "../helpers/eventually.ts";
import { openEnvelopes, type QueueStand, send, type StandGateway } from "../helpers/queue-stand.ts";

interface Opened {
  readonly stand: QueueStand;
  readonly gateway: StandGateway;
  readonly version: RunningVersion;
  readonly spawnPoolWorker: () => Promise<ChildProcess>;
}

const program = path.join(import.meta.dirname, "dying-pool-worker.ts");

/** At the same time, because each waits more than it works. */
describe.concurrent("Consumer", () => {
  it("takes over what a pool worker had that was killed", async (test) => {
    const { stand, version, spawnPoolWorker } = await opened(test);
    const child = await spawnPoolWorker();
    const killer = send(version, { id: "kill" });
    const other = send(version, { id: "other" });
    await once(child, "exit");
    const killedAt = performance.now();
    const heir = await stand.poolWorker();
    await eventually(() => expect(heir.executions).toHaveLength(1));
    heir.executions[0]?.finish();
    await eventually(() => expect(heir.executions).toHaveLength(2));
    heir.executions[1]?.finish();
    await eventually(() => expect(killer.sink.ended && other.sink.ended).toBe(true));
    expect(performance.now() - killedAt).toBeLessThan(10_000);
    expect(killer.sink).toMatchObject({ responses: [{ id: "kill" }], error: undefined });
    expect(other.sink).toMatchObject({ responses: [{ id: "other" }], error: undefined });
  });

  it("gives up the one request that kills pool workers, and answers those beside it", async (test) => {
    const { stand, version, spawnPoolWorker } = await opened(test);
    // Always one that takes the place of the one that was killed.
    let killed = 0;
    let over = false;
    let last: ChildProcess | undefined;
    const replace = async (): Promise<void> => {
      const child = await spawnPoolWorker();
      last = child;
      await once(child, "exit");
      if (over) return;
      killed++;
      await replace();
    };
    const replacing = replace();
    const sent = ["a", "kill", "b"].map((id) => send(version, { id }));
    const alone = send(version, { id: "c" }, "other tenant");
    const [before, killer, after] = sent;
    await eventuallyLong(() => expect([...sent, alone].every(({ sink }) => sink.ended)).toBe(true));
    // The last pool worker removes what is answered, a moment later.
    await eventuallyLong(async () =>
      expect(await stand.commands.keys(names.envelope(stand.pool, "*"))).toEqual([]),
    );
    over = true;
    if (last) await endProcess(last);
    await replacing;
    for (const one of [before, after, alone]) {
      expect(one?.sink.error).toBeUndefined();
      expect(one?.sink.responses).toHaveLength(1);
    }
    expect(killer?.sink.error).toMatchObject({
      code: StatusCode.Internal,
      message: "running this request of model 'echo' ended its pool worker, more than once",
    });
    // Twice with all that it had, and twice with that one alone.
    expect(killed).toBeLessThanOrEqual(4);
  }, 90_000);

  it("leaves nothing of what it answered just before it was killed", async (test) => {
    const { stand, version, spawnPoolWorker } = await opened(test);
    const child = await spawnPoolWorker();
    const last = send(version, { id: "last" });
    const more = send(version, {}, "other tenant");
    await once(child, "exit");
    // It takes over what was not written by then.
    await spawnPoolWorker();
    await eventuallyLong(() => expect(last.sink.ended && more.sink.ended).toBe(true));
    await eventuallyLong(async () => expect(await openEnvelopes(stand)).toEqual([]));
    expect(await stand.commands.keys(names.envelope(stand.pool, "*"))).toEqual([]);
    expect(last.sink.responses).toHaveLength(1);
  }, 90_000);

  it("drops the requests of a gateway that died", async (test) => {
    const { stand, gateway, version } = await opened(test);
    send(version, { id: "orphan" });
    await eventually(async () => expect(await openEnvelopes(stand)).toEqual([1]));
    gateway.die();
    // As it is when it has said nothing for a while.
    await stand.commands.del(names.gateway(gateway.name));
    const living = await stand.gateway();
    const sent = send(await stand.serve(living), { id: "living" });
    const worker = await stand.poolWorker();
    await eventually(() => expect(worker.executions.map(({ ids }) => ids)).toEqual(["living"]));
    worker.executions[0]?.finish();
    await eventually(() => expect(sent.sink.ended).toBe(true));
    await eventually(async () => expect(await openEnvelopes(stand)).toEqual([]));
    expect(await stand.commands.keys(names.envelope(stand.pool, "*"))).toEqual([]);
  });
});

async function opened(test: TestContext): Promise<Opened> {
  const stand = await openStand(test);
  const gateway = await stand.gateway();
  const version = await stand.serve(gateway);
  const spawnPoolWorker = async (): Promise<ChildProcess> => {
    const child = spawn(process.execPath, [program, stand.url, stand.pool], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    test.onTestFinished(() => endProcess(child));
    await once(child.stdout, "data");
    return child;
  };
  return { stand, gateway, version, spawnPoolWorker };
}

/** Each pool worker that dies is noticed after seconds, and several have to. */
function eventuallyLong(assertion: () => void | Promise<void>): Promise<void> {
  return vi.waitFor(assertion, { timeout: 80_000, interval: 50 });
}
