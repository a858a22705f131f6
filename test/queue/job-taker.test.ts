import type { Job, Queue } from "bullmq";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type JobRoom, JobTaker } from "../../queue/job-taker.ts";
import { jobOptions } from "../../queue/jobs.ts";
import { names, queueName } from "../../queue/names.ts";
import { openQueue } from "../../queue/pool-link.ts";
import { connect, type Redis } from "../../redis/connection.ts";
import { eventually } from "../helpers/eventually.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";

describe("JobTaker", () => {
  let server: RedisServer;
  let connections: Redis[] = [];
  let queue: Queue;
  let taker: JobTaker<unknown> | undefined;
  beforeAll(async () => {
    server = await startRedis();
  });
  beforeEach(async () => {
    connections = [await connect(server.url, "commands"), await connect(server.url, "blocking")];
    const [commands] = connections;
    if (commands) queue = openQueue("pool", commands);
  });
  afterEach(async () => {
    await taker?.close();
    await queue.close();
    for (const connection of connections) {
      if (connection.status === "ready") await connection.flushall();
      connection.disconnect();
    }
  });
  afterAll(() => server.stop());

  function take(
    process: (job: Job<unknown>) => Promise<void>,
    concurrency = 4,
    room?: JobRoom,
  ): void {
    const [, connection] = connections;
    if (!connection) throw new Error("expected a connection");
    const prefix = names.queuePrefix("pool");
    taker = new JobTaker(queueName, process, { connection, prefix, concurrency }, room);
    taker.on("error", () => {});
  }

  async function add(...named: string[]): Promise<void> {
    for (const name of named) await queue.add(name, {}, jobOptions);
  }

  async function scriptsRun(): Promise<number> {
    const stats = (await connections[0]?.info("commandstats")) ?? "";
    return Number(/cmdstat_evalsha:calls=(\d+)/u.exec(stats)?.[1] ?? 0);
  }

  it("brings the next job along with the end of a quick one", async () => {
    const count = 100;
    await add(...Array.from({ length: count }, String));
    const before = await scriptsRun();
    const done: string[] = [];
    take(({ name }) => Promise.resolve(void done.push(name)));
    await eventually(() => expect(done).toHaveLength(count));
    expect(done).toEqual(Array.from({ length: count }, String));
    // Where something holds the process up, a job seems to take long.
    expect((await scriptsRun()) - before).toBeLessThan(1.5 * count);
  });

  it("takes other jobs beside those that take long, but no more than it may", async () => {
    const gate = Promise.withResolvers<void>();
    const begun: string[] = [];
    take(({ name }) => (begun.push(name), gate.promise), 2);
    await add("a", "b", "c", "d");
    await eventually(() => expect(begun).toEqual(["a", "b"]));
    expect((await queue.getJobCounts())["waiting"]).toBe(2);
    gate.resolve();
    await eventually(() => expect(begun).toEqual(["a", "b", "c", "d"]));
  });

  it("takes nothing while there is no room, but what there is room for although there is none", async () => {
    const gate = Promise.withResolvers<void>();
    const begun: string[] = [];
    const room = { hasRoom: true, hasRoomForNext: () => Promise.resolve(isWelcome) };
    let isWelcome = false;
    take(
      ({ name }) => {
        begun.push(name);
        room.hasRoom = false;
        isWelcome = false;
        return gate.promise;
      },
      2,
      room,
    );
    await add("a", "b", "c", "d", "e", "f");
    await eventually(() => expect(begun).toEqual(["a"]));
    isWelcome = true;
    await eventually(() => expect(begun).toEqual(["a", "b"]));
    room.hasRoom = true;
    await eventually(() => expect(taker?.look()).toBeUndefined());
    // It has as many as it may by now, but for those that are welcome.
    isWelcome = true;
    await eventually(() => expect(begun).toEqual(["a", "b", "c"]));
    isWelcome = true;
    await eventually(() => expect(begun).toEqual(["a", "b", "c", "d"]));
    isWelcome = true;
    // Twice as many as it may is the end of it.
    await eventually(async () => expect((await queue.getJobCounts())["active"]).toBe(4));
    expect(begun).toHaveLength(4);
    room.hasRoom = true;
    gate.resolve();
    await eventually(() => {
      room.hasRoom = true;
      taker?.look();
      expect(begun).toHaveLength(6);
    });
  });

  it("waits for jobs when there are none", async () => {
    const done: string[] = [];
    take(({ name }) => Promise.resolve(void done.push(name)));
    for (const name of ["a", "b"]) {
      await add(name);
      await eventually(() => expect(done.at(-1)).toBe(name));
      await eventually(async () => expect((await queue.getJobCounts())["active"]).toBe(0));
    }
  });

  it("tries again what has failed", async () => {
    let attempts = 0;
    take(() => (++attempts < 3 ? Promise.reject(new Error("not yet")) : Promise.resolve()));
    await add("a");
    await eventually(() => expect(attempts).toBe(3));
  });

  it("ends what it has when it is closed, and takes nothing more", async () => {
    const gate = Promise.withResolvers<void>();
    const begun: string[] = [];
    take(({ name }) => (begun.push(name), gate.promise), 1);
    await add("a", "b");
    await eventually(() => expect(begun).toEqual(["a"]));
    let closed = false;
    const closing = taker?.close().then(() => (closed = true));
    await queue.getJobCounts();
    expect(closed).toBe(false);
    gate.resolve();
    await closing;
    expect(begun).toEqual(["a"]);
    expect(await queue.getJobCounts()).toMatchObject({ waiting: 1, active: 0 });
  });
});
