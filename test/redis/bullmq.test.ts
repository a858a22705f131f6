import { Queue, Worker } from "bullmq";
import { afterEach, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { startRedisCluster } from "../helpers/redis-cluster.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";
import { opening } from "./opening.ts";

describe("the roles of BullMQ's connections", () => {
  const connect = opening();
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    // The last first: servers go after those that use them.
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    for (const close of closing.splice(0).toReversed()) await close();
  });

  it.each(["a Redis", "a Cluster"])("outlast %s that was away", async (kind) => {
    const { url, masters } = await start(kind);
    const prefix = "{test}";
    const connections = [await connect(url, "commands"), await connect(url, "blocking")] as const;
    const queue = new Queue("jobs", { connection: connections[0], prefix });
    const done: unknown[] = [];
    const consumer = new Worker("jobs", (job) => Promise.resolve(done.push(job.data)), {
      connection: connections[1],
      prefix,
    });
    closing.push(
      () => queue.close(),
      () => consumer.close(),
    );
    // They repeat what their connections say.
    queue.on("error", () => {});
    consumer.on("error", () => {});
    await consumer.waitUntilReady();
    await queue.add("job", "before", { jobId: "before" });
    await eventually(() => expect(done).toEqual(["before"]));

    await Promise.all(masters.map((master) => master.kill()));
    await expect(queue.add("job", "lost")).rejects.toBeInstanceOf(Error);
    await Promise.all(masters.map((master) => master.restart()));
    // An id, so that an attempt whose answer is lost adds nothing.
    await eventually(() => queue.add("job", "after", { jobId: "after" }));
    await eventually(() => expect(done).toEqual(["before", "after"]));
  });

  async function start(kind: string): Promise<{ url: string; masters: readonly RedisServer[] }> {
    if (kind === "a Cluster") {
      const cluster = await startRedisCluster();
      closing.push(() => cluster.stop());
      return cluster;
    }
    const server = await startRedis();
    closing.push(() => server.stop());
    return { url: server.url, masters: [server] };
  }
});
