import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runPython } from "./python.ts";

/** A server that runs in a process of its own, with the models of models.py. */
export interface RunningServer {
  /** `host:port` of both transports. */
  readonly http: string;
  readonly grpc: string;
  readonly repository: string;
  stop(): Promise<void>;
}

interface Ports {
  readonly http: number;
  readonly grpc: number;
  readonly metrics: number;
}

const root = path.join(import.meta.dirname, "../..");
const startMilliseconds = 60_000;

/** Starts `tidepool serve` with its models as ONNX graphs: the named ones, or all that are meant to load. */
export function startTidepool(...models: readonly string[]): Promise<RunningServer> {
  return start("onnx", models, (repository, ports) => [
    process.execPath,
    path.join(root, "cli/main.ts"),
    "serve",
    `--model-repository=${repository}`,
    `--local-cache-directory=${path.join(path.dirname(repository), "cache")}`,
    `--http-port=${ports.http}`,
    `--grpc-port=${ports.grpc}`,
    `--metrics-port=${ports.metrics}`,
  ]);
}

/** Starts the real reference server, with the same models behind its Python backend; see bench/peer. */
export function startReference(): Promise<RunningServer> {
  return start("python", [], (repository, ports) => [
    path.join(root, "bench/peer/start.sh"),
    repository,
    `--http-port=${ports.http}`,
    `--grpc-port=${ports.grpc}`,
    `--metrics-port=${ports.metrics}`,
  ]);
}

async function start(
  backend: string,
  models: readonly string[],
  command: (repository: string, ports: Ports) => readonly string[],
): Promise<RunningServer> {
  const directory = await mkdtemp(path.join(tmpdir(), "tidepool-conformance-"));
  const repository = path.join(directory, "models");
  for await (const _ of runPython("models.py", repository, backend));
  const ports = { http: await freePort(), grpc: await freePort(), metrics: await freePort() };
  const [program = "", ...parameters] = command(repository, ports);
  const loadable = (await readdir(repository)).filter((name) => !/^(spare|broken)/u.test(name));
  const loaded = models.length > 0 ? models : loadable;
  parameters.push("--model-control-mode=explicit", ...loaded.map((name) => `--load-model=${name}`));
  const child = spawn(program, parameters, { stdio: ["ignore", "pipe", "pipe"] });
  const output = collect(child);
  await ready(child, `http://127.0.0.1:${ports.http}/v2/health/ready`, output);
  return {
    http: `127.0.0.1:${ports.http}`,
    grpc: `127.0.0.1:${ports.grpc}`,
    repository,
    stop: async () => {
      await end(child);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("the system gave no port");
  return address.port;
}

function collect(child: ChildProcess): () => string {
  let output = "";
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-8000);
  };
  child.stdout?.on("data", keep);
  child.stderr?.on("data", keep);
  return () => output;
}

async function ready(child: ChildProcess, url: string, output: () => string): Promise<void> {
  const until = performance.now() + startMilliseconds;
  while (performance.now() < until && child.exitCode === null) {
    const response = await fetch(url).catch(() => undefined);
    if (response?.ok) return;
    await sleep(50);
  }
  child.kill("SIGKILL");
  throw new Error(`the server did not become ready: ${output()}`);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const killer = setTimeout(() => child.kill("SIGKILL"), 10_000);
  await exited;
  clearTimeout(killer);
}
