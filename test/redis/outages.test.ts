import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";
import { opening } from "./opening.ts";

describe("watchOutages", () => {
  let server: RedisServer;
  let told: string[];
  let name: string;
  const connect = opening();
  const listener = {
    onAway: (text: string) => told.push(text),
    onBack: (text: string) => told.push(text),
  };
  beforeEach(async () => {
    told = [];
    server = await startRedis();
    name = `Redis at 127.0.0.1:${server.port}`;
  });
  afterEach(() => server.stop());

  it("tells once that Redis is away and once that it is back", async () => {
    const redis = await connect(server.url, "commands", listener);
    let attempts = 0;
    redis.on("reconnecting", () => attempts++);
    await server.kill();
    await eventually(() => expect(attempts).toBeGreaterThan(3));
    expect(told).toEqual([`${name} is away: the connection was closed`]);
    await server.restart();
    await eventually(() => expect(told).toHaveLength(2));
    expect(told[1]).toBe(`${name} is back`);
  });

  it("tells of the next outage, too", async () => {
    const redis = await connect(server.url, "commands", listener);
    for (const count of [1, 2]) {
      /* oxlint-disable no-await-in-loop -- one outage after the other */
      const admin = await connect(server.url, "commands");
      await admin.client("KILL", "ID", await redis.client("ID"));
      await eventually(() => expect(told).toHaveLength(2 * count));
      /* oxlint-enable no-await-in-loop */
    }
    expect(told[2]).toMatch(/is away/u);
  });

  it("is silent about a connection that was ended", async () => {
    const redis = await connect(server.url, "commands", listener);
    const ended = new Promise((resolve) => redis.once("end", resolve));
    redis.disconnect();
    await ended;
    expect(told).toEqual([]);
  });
});
