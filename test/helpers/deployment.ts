import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { endProcess } from "./end-process.ts";
import { freePort } from "./free-port.ts";
import { GrpcClient } from "./grpc-client.ts";
import { HttpClient } from "./http-client.ts";
import { type RedisServer, type RedisServerOptions, startRedis } from "./redis-server.ts";
import type { LogLine } from "./tidepool-process.ts";

const root = path.resolve(import.meta.dirname, "../..");

/** One process of a deployment, through all its lives. */
export interface DeployedProcess {
  /** The one that runs now, or ran last. */
  readonly process: ChildProcess;
  /** What it has logged in this life. */
  readonly lines: readonly LogLine[];
  /** Ends it as a crash would and waits. */
  kill(): Promise<void>;
  /** Asks it to end and waits. */
  stop(): Promise<void>;
  /** Starts it again, with the same flags and ports; resolves when it serves, or takes requests. */
  start(): Promise<void>;
}

export interface DeployedGateway extends DeployedProcess {
  readonly http: HttpClient;
  readonly grpc: GrpcClient;
  /** As in `127.0.0.1:8002`. */
  readonly metrics: string;
}

export interface DeploymentOptions {
  /** The model repository. */
  readonly models: string;
  /** @defaultValue 1 */
  readonly gateways?: number;
  /** @defaultValue 1 */
  readonly poolWorkers?: number;
  /** Of all processes. */
  readonly flags?: readonly string[];
  /** Of one gateway only. */
  readonly gatewayFlags?: (gateway: number) => readonly string[];
  readonly redis?: RedisServerOptions;
}

/** A Redis, gateways and pool workers, each a process of its own that a test may end and start again. */
export interface Deployment {
  readonly redis: RedisServer;
  readonly gateways: readonly DeployedGateway[];
  readonly poolWorkers: readonly DeployedProcess[];
  /** The first gateway's. */
  readonly http: HttpClient;
  /** Starts one more. */
  addPoolWorker(): Promise<DeployedProcess>;
  /** Ends all of it. */
  stop(): Promise<void>;
}

/** Starts a deployment and waits until its gateways serve, which takes a pool worker the first time. */
export async function deploy(options: DeploymentOptions): Promise<Deployment> {
  const { models, gateways: gatewayCount = 1, poolWorkers: workerCount = 1, flags = [] } = options;
  const redis = await startRedis(options.redis);
  const cache = mkdtempSync(path.join(tmpdir(), "tidepool-deployment-"));
  const shared = [
    `--model-repository=${models}`,
    `--redis-url=${redis.url}`,
    `--local-cache-directory=${cache}`,
    ...flags,
  ];
  const gateways: DeployedGateway[] = [];
  const poolWorkers: DeployedProcess[] = [];
  const addPoolWorker = async (): Promise<DeployedProcess> => {
    const one = deployedProcess("pool", shared, ({ msg }) => msg.includes("takes requests"));
    poolWorkers.push(one);
    await one.start();
    return one;
  };
  const stop = async (): Promise<void> => {
    for (const { http, grpc } of gateways) {
      http.close();
      grpc.close();
    }
    await Promise.all(gateways.map((one) => one.stop()));
    await Promise.all(poolWorkers.map((one) => one.stop()));
    await redis.stop();
    rmSync(cache, { recursive: true, force: true });
  };
  try {
    for (let i = 0; i < gatewayCount; i++) {
      const own = options.gatewayFlags?.(i) ?? [];
      gateways.push(await deployedGateway([...shared, ...own]));
    }
    const workers = Array.from({ length: workerCount }, () => addPoolWorker());
    await Promise.all([...workers, ...gateways.map((one) => one.start())]);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    redis,
    gateways,
    poolWorkers,
    get http() {
      const [first] = gateways;
      if (!first) throw new Error("a deployment without gateways");
      return first.http;
    },
    addPoolWorker,
    stop,
  };
}

async function deployedGateway(flags: readonly string[]): Promise<DeployedGateway> {
  // One after the other, so that no two are the same.
  const [http, grpc, metrics] = [await freePort(), await freePort(), await freePort()];
  const ports = [`--http-port=${http}`, `--grpc-port=${grpc}`, `--metrics-port=${metrics}`];
  return Object.assign(deployedProcess("gateway", [...flags, ...ports], serves), {
    http: new HttpClient(`127.0.0.1:${http}`),
    grpc: new GrpcClient(`127.0.0.1:${grpc}`),
    metrics: `127.0.0.1:${metrics}`,
  });
}

function serves(line: LogLine): boolean {
  return line["http"] !== undefined;
}

/** One that has not been started yet. @param ready true for the line that it logs when others can use it */
function deployedProcess(
  command: string,
  flags: readonly string[],
  ready: (line: LogLine) => boolean,
): DeployedProcess {
  let child: ChildProcess | undefined;
  const lines: LogLine[] = [];
  const current = (): ChildProcess => {
    if (!child) throw new Error(`${command} has not been started`);
    return child;
  };
  return {
    get process() {
      return current();
    },
    lines,
    async kill() {
      if (!child || child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
    async stop() {
      if (child) await endProcess(child);
    },
    async start() {
      lines.length = 0;
      child = spawn(process.execPath, ["cli/main.ts", command, ...flags], {
        cwd: root,
        stdio: ["ignore", "pipe", "inherit"],
      });
      await untilReady(child, lines, ready);
    },
  };
}

function untilReady(
  child: ChildProcess,
  lines: LogLine[],
  ready: (line: LogLine) => boolean,
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (!child.stdout) throw new Error("no output");
    const output = createInterface(child.stdout);
    output.on("line", (text) => {
      const line: LogLine = JSON.parse(text);
      lines.push(line);
      if (ready(line)) resolve();
    });
    output.on("close", () => reject(new Error(`ended: ${JSON.stringify(lines, undefined, 2)}`)));
  });
}
