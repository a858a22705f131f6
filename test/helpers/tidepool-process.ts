import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";

const root = path.resolve(import.meta.dirname, "../..");

export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** A real `tidepool serve` on ports that were free. */
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
}

/** Starts the server and waits until it serves; fails with its log when it ends before that. */
export async function startTidepool(args: readonly string[]): Promise<TidepoolProcess> {
  const ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"];
  const child = spawn(process.execPath, ["cli/main.ts", "serve", ...ports, ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit").then(([code, signal]) => code ?? signal);
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
  };
}
