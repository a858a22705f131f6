import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Progress } from "../../protocol/progress.ts";
import { PoolChannel } from "../../queue/pool-channel.ts";
import { Presence } from "../../queue/presence.ts";
import { startProgress } from "../../queue/start-progress.ts";
import { StartReporter } from "../../queue/start-reporter.ts";
import { connect, type Redis } from "../../redis/connection.ts";
import { eventually } from "../helpers/eventually.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";

let server: RedisServer;
let commands: Redis;
let subscriber: Redis;
let link: { channel: PoolChannel; presence: Presence };
let told: Progress[];
let end = (): void => {};
beforeAll(async () => {
  server = await startRedis();
  commands = await connect(server.url, "commands");
  subscriber = await connect(server.url, "subscriber");
  const channel = await PoolChannel.open("a", commands, subscriber);
  link = { channel, presence: new Presence("a", commands) };
});
beforeEach(() => {
  told = [];
});
afterEach(() => end());
afterAll(async () => {
  for (const redis of [commands, subscriber]) redis.disconnect();
  await server.stop();
});

const watch = (version: string): void => {
  end = startProgress(version, link, (progress) => told.push(progress));
};

describe("startProgress", () => {
  it("tells the steps of a pool worker's start, with the bytes that it has fetched", async () => {
    watch("v1");
    const reporter = new StartReporter("v1", link.channel);
    link.channel.publish({ type: "starting" });
    reporter.onPhase("fetch");
    reporter.onFetched({ fetchedBytes: 5, totalBytes: 10 });
    reporter.onFetched({ fetchedBytes: 10, totalBytes: 10 });
    reporter.onPhase("load");
    reporter.onPhase("warmup");
    reporter.ready(0);
    await eventually(() =>
      expect(told).toEqual([
        { state: "starting" },
        { state: "fetching" },
        { state: "fetching", fetchedBytes: 5, totalBytes: 10 },
        { state: "fetching", fetchedBytes: 10, totalBytes: 10 },
        { state: "loading" },
        { state: "warming" },
        { state: "running" },
      ]),
    );
  });

  it("tells nothing of other versions, and nothing after its end", async () => {
    watch("v2");
    new StartReporter("v1", link.channel).onPhase("fetch");
    new StartReporter("v2", link.channel).onPhase("load");
    await eventually(() => expect(told).toEqual([{ state: "loading" }]));
    end();
    let heard = 0;
    end = link.channel.on("progress", () => heard++);
    new StartReporter("v2", link.channel).onPhase("warmup");
    await eventually(() => expect(heard).toBe(1));
    expect(told).toHaveLength(1);
  });

  it("knows of a pool worker that said that it starts before anybody listened", async () => {
    const word = {
      id: "w",
      state: "starting",
      inFlight: 0,
      sequences: 0,
      startedAt: 0,
      resident: [],
    } as const;
    await link.presence.say(word, Date.now());
    watch("v1");
    await eventually(() => expect(told).toEqual([{ state: "starting" }]));
    await link.presence.leave("w");
  });
});

describe("StartReporter", () => {
  it("notes when each step began, one that was not taken when the next one did", () => {
    const reporter = new StartReporter("v1", link.channel);
    reporter.onPhase("fetch");
    reporter.onPhase("load");
    reporter.onPhase("fetch");
    const marks = reporter.ready(7);
    const { decidedAt, fetchAt, loadAt, warmupAt, readyAt } = marks;
    expect(decidedAt).toBe(7);
    expect([fetchAt, loadAt, warmupAt, readyAt]).toEqual(
      [fetchAt, loadAt, warmupAt, readyAt].toSorted((a, b) => a - b),
    );
    expect(warmupAt).toBe(readyAt);
  });
});
