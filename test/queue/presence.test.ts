import { describe, expect, it } from "vitest";
import { Demand } from "../../queue/demand.ts";
import { names } from "../../queue/names.ts";
import { PoolChannel } from "../../queue/pool-channel.ts";
import { Presence } from "../../queue/presence.ts";
import { connect } from "../../redis/connection.ts";
import { eachStand } from "../helpers/each-stand.ts";
import { eventually } from "../helpers/eventually.ts";
import { keyOf, type QueueStand, send } from "../helpers/queue-stand.ts";

let stand: QueueStand;
eachStand((opened) => {
  stand = opened;
});

describe("Presence", () => {
  it("shows a pool worker with what it has, until it leaves", async () => {
    const presence = new Presence(stand.pool, stand.commands);
    const worker = await stand.poolWorker();
    const gateway = await stand.gateway();
    const sent = send(await stand.serve(gateway));
    await eventually(async () =>
      expect(await presence.present(Date.now())).toMatchObject([
        { id: worker.name, state: "ready", inFlight: 1, resident: [keyOf("echo")] },
      ]),
    );
    const closing = worker.close();
    await eventually(async () =>
      expect(await presence.present(Date.now())).toMatchObject([{ state: "draining" }]),
    );
    worker.executions[0]?.finish();
    await closing;
    expect(sent.sink.ended).toBe(true);
    expect(await presence.present(Date.now())).toEqual([]);
  });

  it("takes silence for absence", async () => {
    const presence = new Presence(stand.pool, stand.commands);
    const word = {
      id: "a",
      state: "ready",
      inFlight: 0,
      sequences: 0,
      startedAt: 0,
      resident: [],
    } as const;
    await presence.say(word, 10_000);
    await presence.say({ ...word, id: "b" }, 12_000);
    expect(await presence.present(15_000)).toHaveLength(2);
    expect((await presence.present(15_001)).map(({ id }) => id)).toEqual(["b"]);
    expect(await stand.commands.hkeys(names.poolWorkers(stand.pool))).toEqual(["b"]);
  });
});

describe("Demand", () => {
  it("sums what gateways wait for, and since when", async () => {
    const demand = new Demand(stand.pool, stand.commands);
    await demand.say("a", { requests: 2, since: 7000 }, 10_000);
    await demand.say("b", { requests: 3, since: 9000 }, 12_000);
    expect(await demand.total(12_000)).toEqual({ requests: 5, since: 7000 });
    await demand.say("a", { requests: 0, since: 7000 }, 12_000);
    expect(await demand.total(12_000)).toEqual({ requests: 3, since: 9000 });
  });

  it("forgets a gateway that says nothing any more", async () => {
    const demand = new Demand(stand.pool, stand.commands);
    await demand.say("a", { requests: 2, since: 7000 }, 10_000);
    expect(await demand.total(15_000)).toMatchObject({ requests: 2 });
    expect(await demand.total(15_001)).toEqual({ requests: 0, since: 15_001 });
    expect(await stand.commands.exists(names.demand(stand.pool))).toBe(0);
  });

  it("is announced at once when it leaves zero, and not again while it lasts", async () => {
    const subscriber = await connect(stand.url, "subscriber");
    const channel = await PoolChannel.open(stand.pool, stand.commands, subscriber);
    const demand = new Demand(stand.pool, stand.commands);
    const heard: number[] = [];
    channel.on("demand", () => {
      demand.total(Date.now()).then(({ requests }) => heard.push(requests), heard.push);
    });
    const gateway = await stand.gateway();
    const version = await stand.serve(gateway);
    const first = send(version);
    const second = send(version);
    await eventually(() => expect(heard).toHaveLength(1));
    await eventually(async () => expect((await demand.total(Date.now())).requests).toBe(2));
    first.call.cancel();
    second.call.cancel();
    await eventually(async () => expect((await demand.total(Date.now())).requests).toBe(0));
    expect(heard).toHaveLength(1);
    expect(heard[0]).toBeGreaterThan(0);
    send(version).call.cancel();
    await eventually(() => expect(heard).toHaveLength(2));
    subscriber.disconnect();
  });
});
