import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { endProcess } from "./end-process.ts";
import { freePort } from "./free-port.ts";

const brought = path.resolve(import.meta.dirname, "../../.tidepool/redis/bin/redis-server");

/** How a Redis of the tests is started. */
export interface RedisServerOptions {
  /** Writes every change to disk before it answers. @defaultValue false */
  readonly appendOnly?: boolean;
  /** Where its data is kept; whoever names it removes it. @defaultValue a temporary folder, until `stop` */
  readonly directory?: string;
  /** @defaultValue one that is free */
  readonly port?: number;
  /** More arguments of redis-server. */
  readonly extra?: readonly string[];
}

/** A real Redis on a port of its own. */
export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** The one that runs now, or ran last. */
  readonly process: ChildProcess;
  /** Asks it to end and waits; its data goes too. */
  stop(): Promise<void>;
  /** Ends it as a crash would and waits; its data stays. */
  kill(): Promise<void>;
  /** Starts it again after `kill`, on the same port and data. */
  restart(): Promise<void>;
}

/** The program: the one that the set-up brought, or the machine's own. */
function redisServerCommand(): string {
  return existsSync(brought) ? brought : "redis-server";
}

/** Starts Redis and waits until it accepts connections; fails with its log when it ends before that. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const port = options.port ?? (await freePort());
  const directory = options.directory ?? mkdtempSync(path.join(tmpdir(), "tidepool-redis-"));
  const settings = {
    bind: "127.0.0.1",
    port: String(port),
    dir: directory,
    save: "",
    appendonly: options.appendOnly ? "yes" : "no",
    appendfsync: "always",
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  args.push(...(options.extra ?? []));
  let child = await spawnRedis(args);
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get process() {
      return child;
    },
    async stop() {
      await endProcess(child);
      if (options.directory === undefined) rmSync(directory, { recursive: true, force: true });
    },
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
    async restart() {
      child = await spawnRedis(args);
    },
  };
}

async function spawnRedis(args: readonly string[]): Promise<ChildProcess> {
  const child = spawn(redisServerCommand(), args, { stdio: ["ignore", "pipe", "inherit"] });
  let log = "";
  await new Promise<void>((resolve, reject) => {
    child.on("error", reject);
    child.stdout.on("data", (chunk) => {
      log += chunk;
      if (log.includes("Ready to accept connections")) resolve();
    });
    child.stdout.on("close", () => reject(new Error(`redis-server ended: ${log}`)));
  });
  return child;
}
