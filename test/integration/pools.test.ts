import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { deploy, type Deployment } from "../helpers/deployment.ts";
import { eventually } from "../helpers/eventually.ts";
import { freePort } from "../helpers/free-port.ts";
import { HttpClient } from "../helpers/http-client.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { onnxModel } from "../helpers/onnx-model.ts";
import { scrape } from "../helpers/scrape.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";

/** Processes start and models load: on a busy machine that takes its time. */
const patience = { timeout: 60_000 };

async function ask(http: HttpClient, name: string): Promise<number | string> {
  const answer = await http.infer(name, addingBody);
  return answer.status === 200 ? JSON.parse(answer.text).outputs[0].data[0] : answer.text;
}

/** Writes a file of pools and gives the flag that names it. */
function poolConfig(folder: ModelDirectory, ...pools: readonly string[]): string {
  folder.write("tidepool.yaml", `pools:\n${pools.map((pool) => `  - ${pool}\n`).join("")}`);
  return `--pool-config=${path.join(folder.path, "tidepool.yaml")}`;
}

describe("pools of a file", patience, () => {
  const models = new ModelDirectory();
  const folder = new ModelDirectory();
  let server: TidepoolProcess;
  let http: HttpClient;
  beforeAll(async () => {
    models.model("even-2", { 1: addingModel(2) });
    models.model("even-4", { 1: addingModel(4) });
    models.model("odd", { 1: addingModel(1) }, "instance_group { kind: KIND_CPU }");
    models.model("lonely", { 1: addingModel(0) });
    const pools = poolConfig(
      folder,
      "{ name: evens, models: [even-*], idle-seconds: 0 }",
      "{ name: odds, models: [odd], min-workers: 1, max-workers: 1, device: cpu }",
    );
    const flags = [pools, "--exit-on-error=false", "--autoscaler-interval-ms=50"];
    server = await startTidepool([`--model-repository=${models.path}`, ...flags], "dev");
    http = new HttpClient(server.http);
  }, 60_000);
  afterAll(async () => {
    http.close();
    await server.stop();
    models.remove();
    folder.remove();
  });

  const poolWorkers = async (pool: string): Promise<number | undefined> =>
    (await scrape(server.metrics)).get(`tidepool_pool_workers{pool="${pool}",state="ready"}`);

  it("each serve their own models", async () => {
    expect([await ask(http, "even-2"), await ask(http, "odd"), await ask(http, "even-4")]).toEqual([
      2, 1, 4,
    ]);
    await eventually(async () => {
      const series = await scrape(server.metrics);
      const waits = [...series.keys()].filter((name) => /wait_seconds_count/u.test(name));
      expect(waits.toSorted()).toEqual([
        'tidepool_queue_wait_seconds_count{model="even-2",pool="evens"}',
        'tidepool_queue_wait_seconds_count{model="even-4",pool="evens"}',
        'tidepool_queue_wait_seconds_count{model="odd",pool="odds"}',
      ]);
    });
  });

  it("each have their own number of pool workers", async () => {
    await eventually(async () => expect(await poolWorkers("evens")).toBe(0), 20_000);
    expect(await poolWorkers("odds")).toBe(1);
    expect(await ask(http, "odd")).toBe(1);
    expect(await poolWorkers("evens")).toBe(0);
    expect(await ask(http, "even-2")).toBe(2);
  });

  it("leave out a model that none of them serves, and the index says so", async () => {
    const index: { name: string }[] = JSON.parse((await http.post("/v2/repository/index")).text);
    expect(index.find(({ name }) => name === "lonely")).toEqual({
      name: "lonely",
      version: "1",
      state: "UNAVAILABLE",
      reason: "no pool serves the model 'lonely'",
    });
    expect(await ask(http, "lonely")).toContain("lonely");
  });
});

describe("a pool worker's memory budget", patience, () => {
  const models = new ModelDirectory();
  const folder = new ModelDirectory();
  let deployment: Deployment;
  let poolMetrics: string;
  beforeAll(async () => {
    for (const [i, name] of ["a", "b", "c"].entries()) models.model(name, { 1: largeModel(i) });
    const port = await freePort();
    poolMetrics = `127.0.0.1:${port}`;
    const pools = poolConfig(folder, '{ name: default, models: ["*"], memory-budget-mb: 1 }');
    deployment = await deploy({
      models: models.path,
      flags: [pools, `--pool-metrics-port=${port}`],
    });
  }, 60_000);
  afterAll(async () => {
    await deployment.stop();
    models.remove();
    folder.remove();
  });

  /** The models that the pool worker holds, and the bytes of their files. */
  async function resident(): Promise<{ names: string; bytes: number }> {
    const series = [...(await scrape(poolMetrics))];
    const names = series.flatMap(([name]) => {
      const found = /^tidepool_pool_worker_inference_count\{model="(?<model>\w+)"/u.exec(name);
      return found?.groups?.["model"] ?? [];
    });
    const bytes = series.find(([name]) => name.startsWith("tidepool_pool_worker_resident_bytes"));
    return { names: names.toSorted().join(""), bytes: bytes?.[1] ?? 0 };
  }

  it("holds what was used last, and loads the rest again when it is asked for", async () => {
    const rounds = [
      ["b", "ab"],
      ["a", "ab"],
      ["c", "ac"],
      ["b", "bc"],
      ["c", "bc"],
      ["a", "ac"],
    ] as const;
    // Two of three fit, and in which order they were opened at the start is open.
    for (const name of ["c", "a"]) await ask(deployment.http, name);
    for (const [name, expected] of rounds) {
      expect(await ask(deployment.http, name)).toBe(["a", "b", "c"].indexOf(name));
      await eventually(async () => {
        const { names, bytes } = await resident();
        expect(names).toBe(expected);
        expect(bytes).toBeLessThan(2 ** 20);
      });
    }
  });
});

/** A model of 0.4 MB that adds a number. */
function largeModel(number: number): Uint8Array {
  const x = { name: "x", datatype: "FP32", shape: [1] } as const;
  const numbers = new Float32Array(100_000).fill(number);
  return onnxModel({
    inputs: [x],
    outputs: [{ ...x, name: "y" }],
    nodes: [
      { op: "Add", inputs: ["x", "numbers"], outputs: ["sums"] },
      { op: "ReduceMax", inputs: ["sums"], outputs: ["y"] },
    ],
    initializers: [
      { ...x, name: "numbers", shape: [100_000], bytes: new Uint8Array(numbers.buffer) },
    ],
  });
}
