import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { UsageError } from "./usage-error.ts";

/** A Redis for one run of `tidepool dev`. */
export interface DevRedis {
  readonly url: string;
  readonly child: ChildProcess;
  /** Ends it; what it kept goes with it. */
  stop(): Promise<void>;
}

/** A Redis would outlive us when we are killed; this shell ends it as soon as its own standard input ends. */
const untilInputEnds = 'redis-server "$@" <&- & cat >/dev/null; kill $!; wait';

/** Starts the `redis-server` of PATH on a free port of this machine, so that it writes down what it answers. */
export async function startDevRedis(): Promise<DevRedis> {
  if (!isOnPath("redis-server")) {
    throw new UsageError(
      "dev: given no redis-server on PATH, expected one (Debian: apt-get install redis-server), or --redis-url",
    );
  }
  const folder = await mkdtemp(path.join(tmpdir(), "tidepool-redis-"));
  const port = await freePort();
  const settings: Readonly<Record<string, string>> = {
    bind: "127.0.0.1",
    port: String(port),
    dir: folder,
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  args.unshift(path.join(import.meta.dirname, "../infra/redis/redis.conf"));
  const child = spawn("sh", ["-c", untilInputEnds, "sh", ...args], {
    stdio: ["pipe", "ignore", "inherit"],
    detached: true,
  });
  const ended = once(child, "exit");
  return {
    url: `redis://127.0.0.1:${port}`,
    child,
    async stop() {
      child.stdin?.end();
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function isOnPath(program: string): boolean {
  const folders = (process.env["PATH"] ?? "").split(path.delimiter);
  return folders.some((folder) => existsSync(path.join(folder, program)));
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port was given");
  return address.port;
}
