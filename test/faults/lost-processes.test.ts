import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { busyModel } from "../helpers/busy-model.ts";
import { deploy, type Deployment, type DeploymentOptions } from "../helpers/deployment.ts";
import { eventually } from "../helpers/eventually.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { scrape } from "../helpers/scrape.ts";
import { type SeenAnswer, SteadyClients } from "../helpers/steady-clients.ts";

const takeoverMilliseconds = 10_000;
/** About two seconds each: each pool worker and each pause once, or for a night's run well over a minute of kills. */
const rounds = process.env["NIGHTLY"] ? 40 : 4;

async function deployed(options: Partial<DeploymentOptions>): Promise<Deployment> {
  const models = new ModelDirectory();
  models.model("busy", { 1: busyModel() }, "max_batch_size: 0");
  const deployment = await deploy({ models: models.path, ...options });
  onTestFinished(async () => {
    await deployment.stop();
    models.remove();
  });
  return deployment;
}

function clientsOf({ gateways }: Deployment, count: number): SteadyClients {
  const https = gateways.map(({ http }) => http);
  return new SteadyClients(https, "busy", count);
}

/** Every number came back, to the one who sent it. */
function expectAllRight(seen: readonly SeenAnswer[]): void {
  expect(seen.filter(({ status, sent, got }) => status !== 200 || got !== sent)).toEqual([]);
  expect(Math.max(...seen.map(({ milliseconds }) => milliseconds))).toBeLessThan(
    takeoverMilliseconds,
  );
}

describe("a pool worker that is killed", () => {
  it("costs the callers of its pool time, and no answer", async () => {
    const deployment = await deployed({ poolWorkers: 3 });
    const clients = clientsOf(deployment, 16);
    await eventually(() => expect(clients.seen.length).toBeGreaterThan(100));
    await deployment.poolWorkers[0]?.kill();
    const before = clients.seen.length;
    await eventually(() => expect(clients.seen.length).toBeGreaterThan(before + 200));
    await sleep(1000);
    expectAllRight(await clients.stop());
  }, 60_000);

  it("costs no answer either when it was the only one and another comes", async () => {
    const deployment = await deployed({ poolWorkers: 1 });
    const clients = clientsOf(deployment, 8);
    await eventually(() => expect(clients.seen.length).toBeGreaterThan(50));
    await deployment.poolWorkers[0]?.kill();
    await deployment.addPoolWorker();
    const before = clients.seen.length;
    await eventually(() => expect(clients.seen.length).toBeGreaterThan(before + 50), 15_000);
    expectAllRight(await clients.stop());
  }, 60_000);

  it("takes no answer away and gives none twice, again and again, with two gateways", async () => {
    const deployment = await deployed({ gateways: 2, poolWorkers: 3 });
    const clients = clientsOf(deployment, 8);
    for (let round = 0; round < rounds; round++) {
      const before = clients.seen.length;
      await eventually(() => expect(clients.seen.length).toBeGreaterThan(before + 20), 15_000);
      const victim = deployment.poolWorkers[round % 3];
      await victim?.kill();
      await sleep((round % 4) * 300);
      await victim?.start();
    }
    const seen = await clients.stop();
    expectAllRight(seen);
    expect(new Set(seen.map(({ got }) => got)).size).toBe(seen.length);
  }, 300_000);
});

describe("a pool worker that is asked to end", () => {
  it("answers what it has, and nothing is run twice", async () => {
    const deployment = await deployed({ poolWorkers: 2 });
    const clients = clientsOf(deployment, 8);
    await eventually(() => expect(clients.seen.length).toBeGreaterThan(50));
    await deployment.poolWorkers[0]?.stop();
    const before = clients.seen.length;
    await eventually(() => expect(clients.seen.length).toBeGreaterThan(before + 50));
    const seen = await clients.stop();
    expectAllRight(seen);
    const executions = async (): Promise<number | undefined> => {
      const [gateway] = deployment.gateways;
      const series = await scrape(gateway?.metrics ?? "");
      return series.get('nv_inference_exec_count{model="busy",version="1"}');
    };
    await eventually(async () => expect(await executions()).toBe(seen.length));
  }, 60_000);
});

describe("a Redis that is killed and comes back", () => {
  it("makes callers wait or try again, and tells nobody anything wrong", async () => {
    const deployment = await deployed({ redis: { appendOnly: true } });
    const clients = clientsOf(deployment, 8);
    await eventually(() => expect(clients.seen.length).toBeGreaterThan(50));
    await deployment.redis.kill();
    await sleep(1500);
    await deployment.redis.restart();
    const restartedAt = clients.seen.length;
    const well = (): number =>
      clients.seen.slice(restartedAt).filter(({ status }) => status === 200).length;
    await eventually(() => expect(well()).toBeGreaterThan(100), 20_000);
    const seen = await clients.stop();
    const refused = seen.filter(({ status }) => status !== 200);
    expect(refused.filter(({ status, retryAfter }) => status !== 503 || !retryAfter)).toEqual([]);
    expect(seen.filter(({ status, sent, got }) => status === 200 && got !== sent)).toEqual([]);
  }, 60_000);
});
