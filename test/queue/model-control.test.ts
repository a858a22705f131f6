import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { LoadOptions } from "../../protocol/engine.ts";
import { ModelControl, type ModelWish } from "../../queue/model-control.ts";
import { QueueEngine } from "../../queue/queue-engine.ts";
import { connect, type Redis } from "../../redis/connection.ts";
import { eventually } from "../helpers/eventually.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";
import { ModelsInMemory } from "../helpers/running-models.ts";

/** Keeps what it is asked. */
class AskedModels extends ModelsInMemory {
  readonly asked: [what: string, options?: LoadOptions][] = [];

  override load(name?: string, options?: LoadOptions): Promise<void> {
    this.asked.push(options ? [`load ${name}`, options] : [`load ${name}`]);
    return Promise.resolve();
  }

  override unload(name?: string): Promise<void> {
    this.asked.push([`unload ${name}`]);
    return Promise.resolve();
  }
}

interface Gateway {
  readonly engine: QueueEngine;
  readonly control: ModelControl;
  readonly models: AskedModels;
  /** What it was told of other gateways' wishes. */
  readonly heard: ModelWish[];
}

describe("ModelControl", () => {
  let redis: RedisServer;
  let connections: Redis[] = [];
  let gateways: Gateway[] = [];
  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(async () => {
    await (await open("commands")).flushall();
  });
  afterEach(() => {
    for (const { control } of gateways) control.close();
    for (const connection of connections) connection.disconnect();
    gateways = [];
    connections = [];
  });
  afterAll(() => redis.stop());

  it("has one gateway follow what another is asked, in the same order", async () => {
    const [one, two] = [await start(), await start()];
    await one.engine.load("a", {});
    await one.engine.unload("a", { unloadDependents: false });
    await one.engine.load("b", {});
    await one.engine.load("a", {});
    await eventually(() => expect(two.models.asked.at(-1)?.[0]).toBe("load a"));
    // A wish that was overtaken by another for the same model may be left out.
    expect(two.models.asked.map(([what]) => what)).toContain("load b");
    expect(two.heard.map(({ generation }) => generation)).toEqual(
      two.heard.map(({ generation }) => generation).toSorted((a, b) => a - b),
    );
    expect(one.models.asked.map(([what]) => what)).toEqual([
      "load a",
      "unload a",
      "load b",
      "load a",
    ]);
    expect(one.control.generation("a")).toBe(4);
    expect(two.control.generation("a")).toBe(4);
  });

  it("brings the config and the files along", async () => {
    const [one, two] = [await start(), await start()];
    const files = new Map([["1/model.onnx", Buffer.from([0, 255, 10])]]);
    await one.engine.load("a", { config: '{"backend":"x"}', files });
    await eventually(() => expect(two.models.asked).toHaveLength(1));
    expect(two.models.asked).toEqual([["load a", { config: '{"backend":"x"}', files }]]);
    await one.engine.load("a", {});
    await eventually(() => expect(two.models.asked).toHaveLength(2));
    expect(two.models.asked[1]).toEqual(["load a", {}]);
  });

  it("lets a gateway that starts later know", async () => {
    const one = await start();
    await one.engine.load("a", { config: "{}" });
    await one.engine.load("b", {});
    await one.engine.unload("b", { unloadDependents: false });
    const later = await start();
    expect([...later.control.wishes.values()]).toEqual([
      { name: "a", loaded: true, generation: 1, config: "{}" },
      { name: "b", loaded: false, generation: 3 },
    ]);
    expect(later.heard).toEqual([]);
  });

  it("misses nothing that several gateways are asked at the same time", async () => {
    const [first, second] = [await start(), await start()];
    const all = [first, second];
    const names = Array.from({ length: 30 }, (_, i) => `model-${i}`);
    await Promise.all(
      names.map((name, i) => (i % 2 ? first : second).engine.load(name, { config: name })),
    );
    await eventually(() => {
      for (const { control, models } of all) {
        expect([...control.wishes.keys()].toSorted()).toEqual(names.toSorted());
        expect(models.asked.map(([what]) => what).toSorted()).toEqual(
          names.map((name) => `load ${name}`).toSorted(),
        );
      }
    });
  });

  it("agrees on the last wish when gateways are asked opposite things at the same time", async () => {
    const [one, two] = [await start(), await start()];
    for (let i = 0; i < 10; i++)
      await Promise.all([
        one.engine.load("a", {}),
        two.engine.unload("a", { unloadDependents: false }),
      ]);
    const later = await start();
    expect(later.control.generation("a")).toBe(20);
    await eventually(() => {
      expect(one.control.wishes).toEqual(later.control.wishes);
      expect(two.control.wishes).toEqual(later.control.wishes);
    });
  });

  it("notices a wish whose announcement it has missed", async () => {
    const [one, two] = [await start(), await start()];
    const deaf = connections.at(-1);
    await deaf?.unsubscribe("tidepool:control");
    await one.engine.load("a", {});
    await eventually(() => expect(two.models.asked).toEqual([["load a", {}]]));
  });

  async function start(): Promise<Gateway> {
    const commands = await open("commands");
    const models = new AskedModels();
    const heard: ModelWish[] = [];
    let engine: QueueEngine | undefined;
    const control = await ModelControl.open(commands, await open("subscriber"), (wish) => {
      heard.push(wish);
      void engine?.follow(wish);
    });
    engine = new QueueEngine(models, {
      strictReadiness: true,
      control,
      explicit: true,
      reachable: () => true,
      leave: () => {},
    });
    const gateway = { engine, control, models, heard };
    gateways.push(gateway);
    return gateway;
  }

  async function open(role: "commands" | "subscriber"): Promise<Redis> {
    const connection = await connect(redis.url, role);
    connections.push(connection);
    return connection;
  }
});
