import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeEchoModels, goodBody } from "../faults/echo-models.ts";
import { endProcess } from "../helpers/end-process.ts";
import { eventually } from "../helpers/eventually.ts";
import { freePort } from "../helpers/free-port.ts";
import { HttpClient } from "../helpers/http-client.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { startPrometheus } from "../helpers/prometheus.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";
import { scrape } from "../helpers/scrape.ts";

const root = path.resolve(import.meta.dirname, "../..");
const patience = { timeout: 60_000 };

/** A command of the program, until it is ended; what it says when it serves or works. */
interface Running {
  readonly child: ChildProcess;
  readonly said: Readonly<Record<string, unknown>>;
}

/** After so many requests, with so many pool workers left. */
function summed(requests: number, ready: number): Readonly<Record<string, number>> {
  return {
    'nv_inference_request_success{model="list",version="1"}': requests,
    'nv_inference_count{model="list",version="1"}': requests,
    'nv_inference_pending_request_count{model="list",version="1"}': 0,
    'tidepool_queue_wait_seconds_count{model="list",pool="default"}': requests,
    'tidepool_queue_requests_per_envelope_sum{pool="default"}': requests,
    'tidepool_queue_depth{pool="default",state="waiting"}': 0,
    'tidepool_queue_depth{pool="default",state="active"}': 0,
    'tidepool_queue_oldest_age_seconds{pool="default"}': 0,
    'tidepool_pool_workers{pool="default",state="ready"}': ready,
  };
}

describe("metrics of two gateways and two pool workers", patience, () => {
  const children: ChildProcess[] = [];
  const models = new ModelDirectory();
  let redis: RedisServer;
  let gateways: readonly { readonly metrics: string; readonly http: HttpClient }[];
  let workers: readonly Running[];
  let ownPort: number;

  beforeAll(async () => {
    writeEchoModels(models);
    redis = await startRedis();
    ownPort = await freePort();
    workers = await Promise.all(["a", "b"].map(startPoolWorker));
    const started = await Promise.all([startGateway(), startGateway()]);
    gateways = started.map(({ said }) => ({
      metrics: String(said["metrics"]),
      http: new HttpClient(String(said["http"])),
    }));
  }, 60_000);
  afterAll(async () => {
    for (const { http } of gateways ?? []) http.close();
    await Promise.all(children.map(endProcess));
    await redis.stop();
    models.remove();
  });

  async function start(args: readonly string[], field: string): Promise<Running> {
    const shared = [`--model-repository=${models.path}`, `--redis-url=${redis.url}`];
    const child = spawn(process.execPath, ["cli/main.ts", ...args, ...shared], {
      cwd: root,
      stdio: ["ignore", "pipe", "inherit"],
    });
    children.push(child);
    return new Promise((resolve, reject) => {
      const output = createInterface(child.stdout);
      output.on("line", (text) => {
        const said = JSON.parse(text);
        if (said[field] !== undefined) resolve({ child, said });
      });
      output.on("close", () => reject(new Error(`${args[0]} ended`)));
    });
  }

  function startGateway(): Promise<Running> {
    return start(["gateway", "--http-port=0", "--grpc-port=0", "--metrics-port=0"], "http");
  }

  function startPoolWorker(id: string): Promise<Running> {
    const metrics = id === "b" ? [`--pool-metrics-port=${ownPort}`] : [];
    const field = id === "b" ? "metrics" : "poolWorker";
    return start(["pool", `--pool-worker-id=${id}`, ...metrics], field);
  }

  /** So many requests to each gateway. */
  async function ask(count: number): Promise<void> {
    const answers = await Promise.all(
      gateways.flatMap(({ http }) =>
        Array.from({ length: count }, () => http.infer("list", goodBody)),
      ),
    );
    for (const { status } of answers) expect(status).toBe(200);
  }

  /** What each gateway says of the series of these names. */
  function told(names: readonly string[]): Promise<readonly object[]> {
    return Promise.all(
      gateways.map(async ({ metrics }) => {
        const series = await scrape(metrics);
        return Object.fromEntries(names.map((name) => [name, series.get(name)]));
      }),
    );
  }

  it("are the same at each gateway, and sums over all pool workers, one that was killed included", async () => {
    await ask(20);
    const before = summed(40, 2);
    await eventually(async () => expect(await told(Object.keys(before))).toEqual([before, before]));
    const [first] = workers;
    if (!first) throw new Error("no pool worker");
    const killed = once(first.child, "exit");
    first.child.kill("SIGKILL");
    await killed;
    await ask(5);
    const after = summed(50, 1);
    await eventually(async () => expect(await told(Object.keys(after))).toEqual([after, after]));
  });

  it("carry a pool worker's name and other names at its own port, so that nothing counts twice", async () => {
    const series = [...(await scrape(`127.0.0.1:${ownPort}`))];
    const labels = '{model="list",version="1",pool_worker="b"}';
    const own = new Map(series).get(`tidepool_pool_worker_inference_request_success${labels}`);
    expect(own).toBeGreaterThanOrEqual(10);
    expect(own).toBeLessThanOrEqual(50);
    for (const [name] of series) {
      expect(name).toMatch(/^tidepool_pool_worker_/u);
      expect(name).toContain('pool_worker="b"');
    }
  });

  it("are text that Prometheus reads, histograms included", async () => {
    const [gateway] = gateways;
    const prometheus = await startPrometheus(gateway?.metrics ?? "");
    try {
      const waits = "tidepool_queue_wait_seconds_bucket";
      const [wait] = await prometheus.query(`histogram_quantile(0.5, ${waits}{model="list"})`);
      expect(Number(wait?.value[1])).toBeGreaterThan(0);
      const [ready] = await prometheus.query('tidepool_pool_workers{state="ready"}');
      expect(ready).toMatchObject({ metric: { pool: "default" }, value: [expect.anything(), "1"] });
    } finally {
      await prometheus.close();
    }
  });
});
