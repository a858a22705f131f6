import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "../..");

export interface PushResult {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/** A `tidepool push` that runs. */
export interface RunningPush {
  readonly process: ChildProcess;
  /** What it has written until now. */
  readonly stderr: string;
  readonly ended: Promise<PushResult>;
}

/** Starts `tidepool push` against a server. @param http as in `127.0.0.1:8000` */
export function startPush(
  http: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): RunningPush {
  const child = spawn(process.execPath, ["cli/main.ts", "push", ...args, `--url=http://${http}`], {
    cwd: root,
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = once(child, "close").then(([code, signal]) => ({
    code: code ?? signal,
    stdout,
    stderr,
  }));
  return {
    process: child,
    get stderr() {
      return stderr;
    },
    ended,
  };
}

/** Runs it to its end. */
export function runPush(
  http: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<PushResult> {
  return startPush(http, args, environment).ended;
}
