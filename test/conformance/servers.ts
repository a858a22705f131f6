import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { endProcess } from "../helpers/end-process.ts";
import { freePort } from "../helpers/free-port.ts";
import { startRedisCluster } from "../helpers/redis-cluster.ts";
import { startTidepool } from "../helpers/tidepool-process.ts";
import { runPython } from "./python.ts";

/** A server that runs in a process of its own, with the models of models.py. */
export interface RunningServer {
  /** `host:port` of both transports. */
  readonly http: string;
  readonly grpc: string;
  readonly repository: string;
  stop(): Promise<void>;
}

const referenceScript = path.join(import.meta.dirname, "../../bench/peer/start.sh");
const startMilliseconds = 60_000;

/** The ways in which tidepool can be run, all of which must answer alike. */
export const shapes = ["serve", "dev", "dev on a Redis Cluster"] as const;

/** Starts tidepool with its models as ONNX graphs: the named ones, or all that are meant to load. */
export async function startWithModels(
  shape: (typeof shapes)[number],
  ...models: readonly string[]
): Promise<RunningServer> {
  const { repository, flags, directory } = await makeModels("onnx", models);
  const cluster = shape === "dev on a Redis Cluster" ? await startRedisCluster() : undefined;
  const redis = cluster ? [`--redis-url=${cluster.url}`] : [];
  const command = shape === "serve" ? "serve" : "dev";
  // The reference needs no permission for it, and its script gives it a cache.
  const allowed = ["--allow-client-shm=true", "--cache-config=local,size=268435456"];
  const settings = [`--model-repository=${repository}`, ...allowed, ...flags, ...redis];
  const server = await startTidepool(settings, command);
  const stop = async (): Promise<void> => {
    await server.stop();
    await cluster?.stop();
    await remove(directory);
  };
  return { http: server.http, grpc: server.grpc, repository, stop };
}

/** Starts the real reference server, with the same models behind its Python backend; see bench/peer. */
export async function startReference(): Promise<RunningServer> {
  const { repository, flags, directory } = await makeModels("python", []);
  const http = `127.0.0.1:${await freePort()}`;
  const grpc = `127.0.0.1:${await freePort()}`;
  const metrics = `127.0.0.1:${await freePort()}`;
  const ports = Object.entries({ http, grpc, metrics }).map(
    ([name, address]) => `--${name}-port=${address.split(":")[1]}`,
  );
  const child = spawn(referenceScript, [repository, ...ports, ...flags], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  await ready(child, `http://${http}/v2/health/ready`);
  const stop = async (): Promise<void> => {
    await endProcess(child);
    await remove(directory);
  };
  return { http, grpc, repository, stop };
}

interface MadeModels {
  readonly repository: string;
  /** That make a server load them. */
  readonly flags: readonly string[];
  /** To be removed in the end. */
  readonly directory: string;
}

async function makeModels(backend: string, names: readonly string[]): Promise<MadeModels> {
  const directory = await mkdtemp(path.join(tmpdir(), "tidepool-conformance-"));
  const repository = path.join(directory, "models");
  for await (const _ of runPython("models.py", repository, backend));
  const loadable = (await readdir(repository)).filter((name) => !/^(spare|broken)/u.test(name));
  const loaded = names.length > 0 ? names : loadable;
  return {
    repository,
    flags: ["--model-control-mode=explicit", ...loaded.map((name) => `--load-model=${name}`)],
    directory,
  };
}

function remove(directory: string): Promise<void> {
  return rm(directory, { recursive: true, force: true });
}

/** The reference opens its ports without a word on its output, so it is asked until it answers. */
async function ready(child: ChildProcess, url: string): Promise<void> {
  let output = "";
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-8000);
  };
  child.stdout?.on("data", keep);
  child.stderr?.on("data", keep);
  const until = performance.now() + startMilliseconds;
  while (performance.now() < until && child.exitCode === null) {
    const response = await fetch(url).catch(() => undefined);
    if (response?.ok) return;
    await sleep(50);
  }
  child.kill("SIGKILL");
  throw new Error(`the server did not become ready: ${output}`);
}
