import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, type Redis } from "../../redis/connection.ts";
import { eventually } from "../helpers/eventually.ts";
import { HttpClient } from "../helpers/http-client.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { identityModel } from "../helpers/onnx-model.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";

/** What stays: who is there, which versions are known, what was counted, whose turn it is, and BullMQ's own of an empty queue. */
const staying =
  /^tidepool:(?:autoscaler|statistics|gateway:.*)$|\}:(?:(?:opened|ticket|statistics):.*|counters|virtual-(?:time|finishes)|requests:(?:events|id|meta))$/u;
/** The request lies beside its envelope, and its answer beside the list of replies. */
const largeElements = 300_000;

describe("a pool that nobody asks any more", { timeout: 60_000 }, () => {
  const models = new ModelDirectory();
  let redis: RedisServer;
  let commands: Redis;
  let server: TidepoolProcess;
  let http: HttpClient;
  beforeAll(async () => {
    const list = identityModel([{ name: "x", datatype: "FP32", shape: ["batch", "n"] }, "y"]);
    models.model("list", { 1: list });
    redis = await startRedis();
    commands = await connect(redis.url, "commands");
    const flags = [`--model-repository=${models.path}`, `--redis-url=${redis.url}`];
    server = await startTidepool([...flags, "--pool-idle-seconds=2"], "dev");
    http = new HttpClient(server.http);
  }, 60_000);
  afterAll(async () => {
    http.close();
    await server.stop();
    commands.disconnect();
    await redis.stop();
    models.remove();
  });

  /** Process ids of its pool workers. */
  function poolWorkers(): readonly number[] {
    const all = execFileSync("ps", ["-eo", "pid,args"], { encoding: "utf8" }).split("\n");
    const ours = all.filter((line) => line.includes("main.ts pool ") && line.includes(redis.url));
    return ours.map((line) => Number.parseInt(line, 10));
  }

  async function ask(elements: number): Promise<number> {
    const data = Array.from({ length: elements }, () => 1);
    const inputs = [{ name: "x", datatype: "FP32", shape: [1, elements], data }];
    return (await http.infer("list", { inputs })).status;
  }

  it("leaves no process, and of its requests nothing in Redis", async () => {
    const asked = [largeElements, ...Array.from({ length: 300 }, () => 4)].map(ask);
    expect(new Set(await Promise.all(asked))).toEqual(new Set([200]));
    const there = poolWorkers();
    expect(there).toHaveLength(1);
    await eventually(() => expect(there.filter(isAlive)).toEqual([]), 30_000);
    expect(poolWorkers()).toEqual([]);
    await eventually(async () => {
      const left = await commands.keys("*");
      expect(left.filter((key) => !staying.test(key))).toEqual([]);
    });
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
