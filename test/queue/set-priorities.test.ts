import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openQueue } from "../../queue/pool-link.ts";
import { setPriorities } from "../../queue/set-priorities.ts";
import { connect, type Redis } from "../../redis/connection.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";

describe("setPriorities", () => {
  let server: RedisServer;
  let commands: Redis;
  beforeAll(async () => {
    server = await startRedis();
    commands = await connect(server.url, "commands");
  });
  afterAll(async () => {
    commands.disconnect();
    await server.stop();
  });

  it("gives jobs that wait other places, however many, and leaves those alone that are gone", async () => {
    const queue = openQueue("pool", commands);
    const ids = Array.from({ length: 150 }, (_, i) => `job-${i}`);
    for (const [i, jobId] of ids.entries())
      await queue.add("job", { i }, { jobId, priority: 10 + i });
    await queue.remove("job-7");
    await setPriorities(
      queue,
      ids.map((id, i) => [id, 1000 - i]),
    );
    const waiting = await queue.getPrioritized();
    const expected = ids.filter((id) => id !== "job-7").toReversed();
    expect(waiting.map(({ id }) => id)).toEqual(expected);
    expect(waiting.map(({ data }) => `job-${data.i}`)).toEqual(expected);
    await queue.close();
  });
});
