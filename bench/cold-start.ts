import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { coldStartPhases } from "../protocol/cold-start.ts";
import { HttpClient } from "../test/helpers/http-client.ts";
import { startS3, s3Environment } from "../test/helpers/s3-server.ts";
import { startTidepool, type TidepoolProcess } from "../test/helpers/tidepool-process.ts";

const peer = process.env["TRITON_PEER"] ?? path.join(import.meta.dirname, "../.tidepool/peer");
const models = process.env["BENCH_MODELS"] ?? path.join(peer, "models/onnx");
const patienceMilliseconds = 30_000;

/** What is on this machine's disk when a cold start begins. */
const variants = {
  /** Everything: only the process is gone. */
  "files cached": [],
  /** The model is known, its files have to be fetched. */
  "files not cached": ["models-1"],
  /** The model has never been here: it is opened apart first. */
  "first time": ["."],
} as const;

interface Case {
  readonly model: string;
  readonly variant: keyof typeof variants;
  readonly shape: readonly number[];
}

const cases: readonly Case[] = [
  { model: "identity_fp32", variant: "files cached", shape: [1, 16] },
  { model: "mlp", variant: "files cached", shape: [1, 784] },
  { model: "mlp", variant: "files not cached", shape: [1, 784] },
  { model: "mlp", variant: "first time", shape: [1, 784] },
  { model: "conv", variant: "files cached", shape: [1, 3, 224, 224] },
  { model: "conv", variant: "files not cached", shape: [1, 3, 224, 224] },
];

/** One cold start: the milliseconds of each phase, and those that the client waited. */
interface Sample {
  readonly phases: readonly number[];
  readonly wall: number;
}

/**
 * Measures cold starts: from zero pool workers to the answer, with a dead process each time, as a Markdown table of
 * medians. Models lie in a real S3 server on this machine.
 */
async function bench(rounds: number): Promise<void> {
  const cache = await mkdtemp(path.join(os.tmpdir(), "tidepool-cold-start-"));
  Object.assign(process.env, s3Environment);
  const s3 = await startS3();
  let server: TidepoolProcess | undefined;
  try {
    for (const name of ["identity_fp32", "mlp", "conv"]) {
      for (const file of ["config.pbtxt", "1/model.onnx"])
        await s3.put(`${name}/${file}`, await readFile(path.join(models, name, file)));
    }
    server = await startTidepool(
      [
        `--model-repository=s3://${new URL(s3.endpoint).host}/${s3.bucket}`,
        `--local-cache-directory=${cache}`,
        "--pool-idle-seconds=0",
        "--autoscaler-interval-ms=50",
      ],
      "dev",
    );
    print(`Node ${process.version}; ${os.cpus().length} × ${os.cpus()[0]?.model}\n`);
    print(
      `| model | on disk | ${coldStartPhases.join(" | ")} | sum | client waited | sum / waited |`,
    );
    print(`|${" --- |".repeat(coldStartPhases.length + 5)}`);
    for (const one of cases) await measure(one, { rounds, server, cache });
  } finally {
    await server?.stop();
    await s3.stop();
    await rm(cache, { recursive: true, force: true });
  }
}

interface Stand {
  readonly rounds: number;
  readonly server: TidepoolProcess;
  readonly cache: string;
}

async function measure({ model, variant, shape }: Case, stand: Stand): Promise<void> {
  const { server, cache } = stand;
  const client = new HttpClient(server.http);
  const body = randomBody(shape);
  const samples: Sample[] = [];
  for (let round = 0; round < stand.rounds; round++) {
    await untilNoPoolWorker(server);
    for (const folder of variants[variant]) await empty(path.join(cache, folder));
    samples.push(await coldStart(client, model, body));
  }
  client.close();
  const phases = coldStartPhases.map((_, i) => median(samples.map((one) => one.phases[i] ?? 0)));
  const sums = samples.map((one) => one.phases.reduce((sum, phase) => sum + phase, 0));
  const ratios = samples.map(({ wall }, i) => (sums[i] ?? 0) / wall);
  const range = `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`;
  const totals = [median(sums), median(samples.map(({ wall }) => wall))];
  const cells = [...phases, ...totals].map((value) => value.toFixed(0));
  print(`| ${[model, variant, ...cells, range].join(" | ")} |`);
}

async function coldStart(client: HttpClient, model: string, body: string): Promise<Sample> {
  const began = performance.now();
  const { status, headers, text } = await client.infer(model, body);
  const wall = performance.now() - began;
  const timing = String(headers["server-timing"] ?? "");
  const phases = [...timing.matchAll(/dur=(?<dur>[\d.]+)/gu)].map((match) => Number(match[1]));
  if (status !== 200 || phases.length === 0) throw new Error(`no cold start: ${status} ${text}`);
  return { phases, wall };
}

/** A process that is about to end would not be dead. */
async function untilNoPoolWorker(server: TidepoolProcess): Promise<void> {
  const until = performance.now() + patienceMilliseconds;
  while (await hasPoolWorker(server.process.pid ?? 0)) {
    if (performance.now() > until) throw new Error("a pool worker does not end");
    await sleep(20);
  }
}

/** Whether a process, or any below it, is a pool worker. */
async function hasPoolWorker(pid: number): Promise<boolean> {
  const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  if (command.split("\0").includes("pool")) return true;
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  for (const thread of threads) {
    const file = `/proc/${pid}/task/${thread}/children`;
    const children = (await readFile(file, "utf8").catch(() => "")).split(" ").filter(Boolean);
    for (const child of children) if (await hasPoolWorker(Number(child))) return true;
  }
  return false;
}

async function empty(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
}

function randomBody(shape: readonly number[]): string {
  const count = shape.reduce((product, dimension) => product * dimension, 1);
  const data = Array.from({ length: count }, () => Math.random());
  return JSON.stringify({ inputs: [{ name: "INPUT0", datatype: "FP32", shape, data }] });
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

await bench(Number(process.argv[2] ?? 20));
