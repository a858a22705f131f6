import { expect, it, describe } from "vitest";
import { PoolHealth } from "../../queue/pool-health.ts";
import { Presence } from "../../queue/presence.ts";
import { eachStand } from "../helpers/each-stand.ts";
import { eventually } from "../helpers/eventually.ts";
import { keyOf, type QueueStand } from "../helpers/queue-stand.ts";

describe("PoolHealth", () => {
  let stand: QueueStand;
  eachStand((opened) => {
    stand = opened;
  });

  const say = (id: string, resident: readonly string[], down: readonly string[]): Promise<void> =>
    new Presence(stand.pool, stand.commands).say(
      { id, state: "ready", inFlight: 0, sequences: 0, startedAt: 0, resident, down },
      Date.now(),
    );

  it("calls a version unhealthy that no pool worker who has it can run", async () => {
    const health = new PoolHealth(new Presence(stand.pool, stand.commands));
    const seen = async (): Promise<readonly boolean[]> => {
      await health.tend();
      return ["both", "one", "nobody"].map((version) => health.isHealthy(version));
    };
    expect(await seen()).toEqual([true, true, true]);
    await say("a", ["both", "one"], ["both", "one"]);
    expect(await seen()).toEqual([false, false, true]);
    await say("b", ["both", "one"], ["both"]);
    expect(await seen()).toEqual([false, true, true]);
    await say("a", ["both", "one"], []);
    await say("b", [], []);
    expect(await seen()).toEqual([true, true, true]);
  });

  it("is asked by the versions of a gateway", async () => {
    const version = await stand.serve(await stand.gateway());
    expect(version.healthy).toBe(true);
    await say("a", [keyOf("echo")], [keyOf("echo")]);
    await eventually(() => expect(version.healthy).toBe(false));
  });
});
