import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Allowance, aSecond } from "../../../auth/limits/allowance.ts";
import { takeAll } from "../../../auth/limits/claim.ts";
import { GatewayCount } from "../../../auth/limits/gateway-count.ts";
import { InFlight } from "../../../auth/limits/in-flight.ts";
import { redisPoints } from "../../../auth/limits/points.ts";
import { RedisPermits } from "../../../auth/limits/redis-permits.ts";
import { connect as open, type Redis } from "../../../redis/connection.ts";
import type { RedisRole } from "../../../redis/roles.ts";
import { eventually } from "../../helpers/eventually.ts";
import { type RedisServer, startRedis } from "../../helpers/redis-server.ts";

let server: RedisServer;
let commands: Redis;
/** What is ended last: tests that wait for time to pass run at the same time. */
const closing: (() => void)[] = [];
beforeAll(async () => {
  server = await startRedis();
  commands = await connect("commands");
});
afterAll(async () => {
  for (const close of closing) close();
  await server.stop();
});

async function connect(role: RedisRole): Promise<Redis> {
  const redis = await open(server.url, role);
  closing.push(() => redis.disconnect());
  return redis;
}

/** Of a test's own, because they share a Redis. */
function newKey(): string {
  return `key:${randomUUID()}`;
}

const now = (): number => performance.now();

/** One of those who share a bound. */
interface Sharer {
  readonly permits: RedisPermits;
  readonly flight: InFlight;
}

async function sharersOf(limit: number, count = 2): Promise<readonly Sharer[]> {
  const key = newKey();
  const gateways = (): number => count;
  const sharer = async (gateway: string): Promise<Sharer> => {
    const [own, subscriber] = [await connect("commands"), await connect("subscriber")];
    const permits = new RedisPermits({ commands: own, subscriber, gateway, gateways });
    closing.push(() => permits.close());
    return { permits, flight: new InFlight({ limit, key, pool: permits, now }) };
  };
  return Promise.all(Array.from({ length: count }, (_, i) => sharer(`gateway-${i}`)));
}

async function flightsOf(limit: number, count?: number): Promise<readonly InFlight[]> {
  return (await sharersOf(limit, count)).map(({ flight }) => flight);
}

async function takes(flight: InFlight | undefined): Promise<boolean> {
  if (!flight) throw new Error("no such gateway");
  return (await takeAll([flight], 1)) === undefined;
}

describe.concurrent("as time goes by", () => {
  it("points tell when their window ends, and begin another", async () => {
    const points = redisPoints(commands, () => 1);
    const key = newKey();
    const short = { limit: 5, seconds: 1, dated: false };
    const { milliseconds } = await points.lease(key, 5, short);
    expect(milliseconds).toBeGreaterThan(900);
    expect(milliseconds).toBeLessThanOrEqual(1000);
    expect((await points.lease(key, 1, short)).points).toBe(0);
    await eventually(async () => expect((await points.lease(key, 1, short)).points).toBe(1));
  });

  it("an allowance is held together by gateways that are asked for more at once", async () => {
    const key = newKey();
    const clients = [commands, await connect("commands")];
    const made = clients.map(
      (client) =>
        new Allowance(
          60,
          aSecond(now),
          redisPoints(client, () => 2),
          key,
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

  it("permits are free that were those of a gateway that is gone", async () => {
    const [one, two] = await sharersOf(2);
    const [gone, other] = [one?.flight, two?.flight];
    expect([await takes(gone), await takes(gone), await takes(other)]).toEqual([true, true, false]);
    one?.permits.close();
    await eventually(async () => expect(await takes(other)).toBe(true), 15_000);
  }, 20_000);

  it("permits that are used are held for longer than a lease", async () => {
    const [one, other] = await flightsOf(1);
    expect(await takes(one)).toBe(true);
    const until = now() + 7000;
    while (now() < until) {
      expect(await takes(other)).toBe(false);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }, 20_000);

  it("a gateway knows how many there are, and forgets those that are gone", async () => {
    const [one, other] = ["one", "other"].map((name) => new GatewayCount(commands, name));
    await eventually(() => expect([one?.count, other?.count]).toEqual([2, 2]));
    other?.close();
    await eventually(() => expect(one?.count).toBe(1), 15_000);
    one?.close();
  }, 20_000);
});

describe("redisPoints", () => {
  const window = { limit: 100, seconds: 60, dated: true };

  it("gives two gateways no more than the window holds, and all of it", async () => {
    const other = redisPoints(await connect("commands"), () => 2);
    const points = redisPoints(commands, () => 2);
    const key = newKey();
    const leases = Array.from({ length: 30 }, (_, at) =>
      (at % 2 === 0 ? points : other).lease(key, 7, window),
    );
    const given = (await Promise.all(leases)).map((lease) => lease.points);
    expect(given.reduce((sum, one) => sum + one, 0)).toBe(100);
    expect((await points.lease(newKey(), 7, window)).left).toBe(93);
  });

  it("keeps each gateway to its share while Redis is away, and to the whole again when it is back", async () => {
    const points = redisPoints(commands, () => 4);
    await server.kill();
    await eventually(() => expect(commands.status).not.toBe("ready"));
    const given = await points.lease(newKey(), 40, window);
    expect(given.points).toBe(25);
    await server.restart();
    await eventually(async () =>
      expect((await points.lease(newKey(), 40, window)).points).toBe(40),
    );
  });
});

describe("RedisPermits", () => {
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
    for (let i = 0; i < 6; i++) {
      const flight = flights[i % 3];
      expect(await takes(flight)).toBe(true);
      expect(await takes(flights[(i + 1) % 3])).toBe(false);
      flight?.release();
      // A refusal holds for a moment.
      await new Promise((resolve) => setTimeout(resolve, 120));
    }
  });

  it("keeps each gateway to its share while Redis is away", async () => {
    const sharers = await sharersOf(8);
    const flights = sharers.map(({ flight }) => flight);
    await server.kill();
    await eventually(async () => {
      const held = await sharers[0]?.permits.hold(new InFlight({ limit: 8, key: "k", now }), 8);
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
