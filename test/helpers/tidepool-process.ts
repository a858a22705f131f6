import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { endProcess } from "./end-process.ts";

const root = path.resolve(import.meta.dirname, "../..");

export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** Commands that answer clients from models: in one process, or by a gateway, a queue and pool workers. */
export type TidepoolCommand = "serve" | "dev";

/** A real server on ports that were free. */
export interface TidepoolProcess {
  readonly process: ChildProcess;
  /** As in `127.0.0.1:8000`. */
  readonly http: string;
  readonly grpc: string;
  readonly metrics: string;
  /** What it logged until now. */
  readonly lines: readonly LogLine[];
  /** Resolves with its exit code, or with the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
  /** Asks it to end and waits; gives what `ended` gives. */
  stop(): Promise<number | NodeJS.Signals>;
}

/**
 * Starts the server and waits until it serves; fails with its log when it ends before that. What it learns of models
 * it forgets, unless the arguments name a cache.
 */
export async function startTidepool(
  args: readonly string[],
  command: TidepoolCommand = "serve",
): Promise<TidepoolProcess> {
  const ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"];
  const cache = mkdtempSync(path.join(tmpdir(), "tidepool-cache-"));
  const settings = [...ports, `--local-cache-directory=${cache}`, ...args];
  const child = spawn(process.execPath, ["cli/main.ts", command, ...settings], {
    cwd: root,
    // Where the set-up puts the redis-server of a machine that has none.
    env: { ...process.env, PATH: `${process.env["PATH"]}:${root}/.tidepool/redis/bin` },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit").then(([code, signal]) => {
    rmSync(cache, { recursive: true, force: true });
    return code ?? signal;
  });
  const lines: LogLine[] = [];
  const output = createInterface(child.stdout);
  const serving = new Promise<LogLine>((resolve, reject) => {
    output.on("line", (text) => {
      const line: LogLine = JSON.parse(text);
      lines.push(line);
      if (line["http"] !== undefined) resolve(line);
    });
    output.on("close", () => reject(new Error(`ended: ${JSON.stringify(lines, undefined, 2)}`)));
  });
  const addresses = await serving;
  return {
    process: child,
    http: String(addresses["http"]),
    grpc: String(addresses["grpc"]),
    metrics: String(addresses["metrics"]),
    lines,
    ended,
    async stop() {
      await endProcess(child);
      return ended;
    },
  };
}
