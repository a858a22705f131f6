import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, type Redis } from "../../redis/connection.ts";
import { type Deployment, type DeployedGateway, deploy } from "../helpers/deployment.ts";
import { eventually } from "../helpers/eventually.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";
import { scrape } from "../helpers/scrape.ts";
import { timesModel, rowOf } from "../helpers/times-model.ts";

const config = "max_batch_size: 8 response_cache { enable: true }";

let models: ModelDirectory;
let cache: RedisServer;
let commands: Redis;
let deployment: Deployment;
beforeAll(async () => {
  models = new ModelDirectory();
  for (const name of ["of-0", "of-1", "shared", "asleep", "flushed", "local"])
    models.model(name, { 1: timesModel(1) }, config);
  cache = await startRedis({ extra: ["--maxmemory", "20mb", "--maxmemory-policy", "allkeys-lru"] });
  commands = await connect(cache.url, "commands");
  deployment = await deploy({
    models: models.path,
    gateways: 2,
    flags: ["--cache-config=local,size=1048576", `--cache-config=redis,url=${cache.url}`],
  });
  for (const [i, gateway] of deployment.gateways.entries()) await shares(gateway, `of-${i}`);
}, 60_000);
afterAll(async () => {
  await deployment.stop();
  commands.disconnect();
  await cache.stop();
  models.remove();
}, 60_000);

async function ask({ http }: DeployedGateway, model: string, value: number): Promise<number> {
  const answer = await http.infer(model, rowOf(value, value));
  return JSON.parse(answer.text).outputs[0].data[0];
}

/** What the statistics of one gateway say. */
async function counts({ http }: DeployedGateway, model: string): Promise<object> {
  const { text } = await http.get(`/v2/models/${model}/stats`);
  const [{ inference_stats: of, inference_count: inferences }] = JSON.parse(text).model_stats;
  return {
    success: of.success.count,
    hit: of.cache_hit.count,
    miss: of.cache_miss.count,
    inferences,
  };
}

function gateways(): readonly [DeployedGateway, DeployedGateway] {
  const [first, second] = deployment.gateways;
  if (!first || !second) throw new Error("two were started");
  return [first, second];
}

/** Resolves when a gateway keeps what it is answered in the Redis of the cache, to which it connects when it can. */
async function shares(gateway: DeployedGateway, model: string): Promise<void> {
  let value = 0;
  await eventually(async () => {
    await ask(gateway, model, ++value);
    expect(await commands.keys(`tidepool:cache:${model}:*`)).not.toEqual([]);
  });
}

/** Resolves when so many answers are in the Redis of the cache. */
async function kept(model: string, entries: number): Promise<void> {
  await eventually(async () => {
    expect(await commands.keys(`tidepool:cache:${model}:*`)).toHaveLength(entries);
  });
}

describe("the response cache of several gateways", { timeout: 60_000 }, () => {
  it("answers on one gateway what another one has had run, and counts that once", async () => {
    const [first, second] = gateways();
    expect(await ask(first, "shared", 3)).toBe(3);
    await kept("shared", 1);
    expect([await ask(second, "shared", 3), await ask(second, "shared", 3)]).toEqual([3, 3]);
    const expected = { success: 3, hit: 2, miss: 1, inferences: 1 };
    for (const gateway of [first, second])
      await eventually(async () => expect(await counts(gateway, "shared")).toEqual(expected));
    for (const { metrics } of [first, second]) {
      const series = await scrape(metrics);
      const of = (name: string) => series.get(`${name}{model="shared",version="1"}`);
      expect(of("nv_cache_num_hits_per_model")).toBe(2);
      expect(of("nv_cache_num_misses_per_model")).toBe(1);
      expect(of("nv_inference_request_success")).toBe(3);
    }
  });

  it("answers while no pool worker is there", async () => {
    const [first, second] = gateways();
    await ask(first, "asleep", 4);
    await kept("asleep", 1);
    const [worker] = deployment.poolWorkers;
    await worker?.stop();
    expect([await ask(first, "asleep", 4), await ask(second, "asleep", 4)]).toEqual([4, 4]);
    await worker?.start();
  });

  it("forgets a model's answers on all of them when one is told to", async () => {
    const [first, second] = gateways();
    await ask(first, "flushed", 5);
    await kept("flushed", 1);
    await ask(second, "flushed", 5);
    expect((await first.http.post("/v2/models/flushed/cache/flush")).status).toBe(200);
    await kept("flushed", 0);
    await eventually(async () => {
      await ask(second, "flushed", 5);
      expect(await counts(second, "flushed")).toMatchObject({ miss: 2 });
    });
  });

  it("goes on without the Redis of the cache, and with it again", async () => {
    const [first, second] = gateways();
    await cache.kill();
    expect([await ask(first, "local", 6), await ask(first, "local", 6)]).toEqual([6, 6]);
    expect(await ask(second, "local", 6)).toBe(6);
    await eventually(async () => {
      expect(await counts(first, "local")).toEqual({ success: 3, hit: 1, miss: 2, inferences: 2 });
    });
    await cache.restart();
    await shares(first, "local");
  });
});
