import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Allowance, aSecond } from "../../../auth/limits/allowance.ts";
import { takeAll } from "../../../auth/limits/claim.ts";
import { GatewayCount } from "../../../auth/limits/gateway-count.ts";
import { InFlight } from "../../../auth/limits/in-flight.ts";
import { redisPoints } from "../../../auth/limits/points.ts";
import { RedisPermits } from "../../../auth/limits/redis-permits.ts";
import type { Redis } from "../../../redis/connection.ts";
import { eventually } from "../../helpers/eventually.ts";
import { type RedisServer, startRedis } from "../../helpers/redis-server.ts";
import { opening } from "../../redis/opening.ts";

const connect = opening();
let server: RedisServer;
let commands: Redis;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(async () => {
  commands = await connect(server.url, "commands");
  await commands.flushall();
});

const now = (): number => performance.now();

async function takes(flight: InFlight | undefined): Promise<boolean> {
  if (!flight) throw new Error("no such gateway");
  return (await takeAll([flight], 1)) === undefined;
}

describe("redisPoints", () => {
  const window = { limit: 100, seconds: 60, dated: true };

  it("gives two gateways no more than the window holds, and all of it", async () => {
    const other = redisPoints(await connect(server.url, "commands"), () => 2);
    const points = redisPoints(commands, () => 2);
    const leases = Array.from({ length: 30 }, (_, at) =>
      (at % 2 === 0 ? points : other).lease("key:a", 7, window),
    );
    const given = (await Promise.all(leases)).map((lease) => lease.points);
    expect(given.reduce((sum, one) => sum + one, 0)).toBe(100);
    expect((await points.lease("key:b", 7, window)).left).toBe(93);
  });

  it("tells when the window ends, and begins another", async () => {
    const points = redisPoints(commands, () => 1);
    const short = { limit: 5, seconds: 1, dated: false };
    const { milliseconds } = await points.lease("key:a", 5, short);
    expect(milliseconds).toBeGreaterThan(900);
    expect(milliseconds).toBeLessThanOrEqual(1000);
    expect((await points.lease("key:a", 1, short)).points).toBe(0);
    await eventually(async () => expect((await points.lease("key:a", 1, short)).points).toBe(1));
  });

  it("keeps each gateway to its share while Redis is away, and to the whole again when it is back", async () => {
    const points = redisPoints(commands, () => 4);
    await server.kill();
    await eventually(() => expect(commands.status).not.toBe("ready"));
    const given = await points.lease("key:a", 40, window);
    expect(given.points).toBe(25);
    await server.restart();
    await eventually(async () => expect((await points.lease("key:c", 40, window)).points).toBe(40));
  });
});

describe("Allowance over Redis", () => {
  it("is held together by gateways that are asked for more at once", async () => {
    const clients = [commands, await connect(server.url, "commands")];
    const made = clients.map(
      (client) =>
        new Allowance(
          60,
          aSecond(now),
          redisPoints(client, () => 2),
          "key:a",
        ),
    );
    const began = now();
    let taken = 0;
    while (now() - began < 2500) {
      const all = made.flatMap((allowance) =>
        Array.from({ length: 20 }, async () => takeAll([allowance], 1)),
      );
      taken += (await Promise.all(all)).filter((short) => short === undefined).length;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    // Three or four windows have begun since, and none was left unused.
    const windows = Math.ceil((now() - began) / 1000) + 1;
    expect(taken).toBeLessThanOrEqual(60 * windows);
    expect(taken).toBeGreaterThanOrEqual(60 * 2);
  });
});

describe("RedisPermits", () => {
  const open: RedisPermits[] = [];
  afterEach(() => open.splice(0).forEach((permits) => permits.close()));

  async function flightsOf(limit: number, count = 2): Promise<readonly InFlight[]> {
    const flights: InFlight[] = [];
    for (let i = 0; i < count; i++) {
      const permits = new RedisPermits({
        commands: await connect(server.url, "commands"),
        subscriber: await connect(server.url, "subscriber"),
        gateway: `gateway-${i}`,
        gateways: () => count,
      });
      open.push(permits);
      flights.push(new InFlight({ limit, key: "key:a", pool: permits, now }));
    }
    return flights;
  }

  it("divides a bound between gateways, whoever asks", async () => {
    const flights = await flightsOf(10);
    const all = Array.from({ length: 40 }, (_, at) => takes(flights[at % 2]));
    const taken = (await Promise.all(all)).filter(Boolean).length;
    expect(taken).toBe(10);
    expect(flights.reduce((sum, { used }) => sum + used, 0)).toBe(10);
  });

  it("hands over what a gateway does not use as soon as another needs it", async () => {
    const flights = await flightsOf(1, 3);
    // Until all have subscribed.
    await eventually(async () => {
      for (const flight of flights) {
        expect(await takes(flight)).toBe(true);
        flight.release();
      }
    });
    for (let i = 0; i < 12; i++) {
      const flight = flights[i % 3];
      expect(await takes(flight)).toBe(true);
      expect(await takes(flights[(i + 1) % 3])).toBe(false);
      flight?.release();
      // A refusal holds for a moment.
      await new Promise((resolve) => setTimeout(resolve, 120));
    }
  });

  it("frees the permits of a gateway that is gone", async () => {
    const [gone, other] = await flightsOf(2);
    expect([await takes(gone), await takes(gone), await takes(other)]).toEqual([true, true, false]);
    open[0]?.close();
    await eventually(async () => expect(await takes(other)).toBe(true), 15_000);
  }, 20_000);

  it("holds on to what is used for longer than a lease", async () => {
    const [one, other] = await flightsOf(1);
    expect(await takes(one)).toBe(true);
    const until = now() + 7000;
    while (now() < until) {
      expect(await takes(other)).toBe(false);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }, 20_000);

  it("keeps each gateway to its share while Redis is away", async () => {
    const flights = await flightsOf(8);
    await server.kill();
    await eventually(async () => {
      const held = await open[0]?.hold(new InFlight({ limit: 8, key: "k", now }), 8);
      expect(held).toBe(4);
    });
    const all = Array.from({ length: 20 }, (_, at) => takes(flights[at % 2]));
    expect((await Promise.all(all)).filter(Boolean).length).toBe(8);
    for (const flight of flights) expect(flight.used).toBe(4);
    await server.restart();
    flights[1]?.release();
    await eventually(async () => expect(await takes(flights[0])).toBe(true), 15_000);
  }, 30_000);
});

describe("GatewayCount", () => {
  it("knows how many there are, and forgets those that are gone", async () => {
    const [one, other] = ["one", "other"].map((name) => new GatewayCount(commands, name));
    await eventually(() => expect([one?.count, other?.count]).toEqual([2, 2]));
    other?.close();
    await eventually(() => expect(one?.count).toBe(1), 15_000);
    one?.close();
  }, 20_000);
});
