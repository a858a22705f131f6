import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { WorkerExit } from "./crash-backoff.ts";
import { forEachLine } from "./lines.ts";
import type { Scaler, ScaleReason } from "./scaler.ts";

/** What a new process is told of itself. */
export interface NewPoolWorker {
  readonly id: string;
  /** Epoch milliseconds. */
  readonly demandSeenAt: number;
  /** Epoch milliseconds. */
  readonly decidedAt: number;
}

export interface ProcessCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

export interface ProcessScalerOptions {
  /** The command of a pool worker. Its process must end when its standard input does: that is when we are gone. */
  readonly command: (worker: NewPoolWorker) => ProcessCommand;
  /** A process that was asked to end is killed after so long. */
  readonly graceMilliseconds: number;
  readonly onExit: (exit: WorkerExit) => void;
  /** Told what a pool worker writes, line by line. */
  readonly onLine: (id: string, stream: "stdout" | "stderr", line: string) => void;
}

/** A process of ours, from its start to its exit. */
interface PoolWorkerProcess {
  readonly id: string;
  readonly child: ChildProcess;
  /** Of the monotonic clock. */
  readonly startedAt: number;
  stopping: boolean;
  killTimer?: NodeJS.Timeout;
}

/**
 * Runs the workers of a pool as processes of this machine. None outlives its parent: each has a pipe as its standard
 * input, which ends when the parent does, however that happens.
 */
export class ProcessScaler implements Scaler {
  readonly #options: ProcessScalerOptions;
  readonly #processes = new Set<PoolWorkerProcess>();
  #closed = false;
  readonly #allGone = Promise.withResolvers<void>();

  constructor(options: ProcessScalerOptions) {
    this.#options = options;
  }

  size(): number {
    return this.#staying().length;
  }

  /** The ids of the processes of all workers, those included that were asked to end. */
  processIds(): readonly number[] {
    return [...this.#processes].flatMap(({ child }) => child.pid ?? []);
  }

  async scaleTo(count: number, reason: ScaleReason): Promise<void> {
    if (this.#closed)
      throw new InferenceError(StatusCode.Unavailable, "the process scaler is closed");
    const staying = this.#staying();
    for (let more = count - staying.length; more > 0; more--) this.#start(reason);
    const load = ({ id }: PoolWorkerProcess): number => reason.inFlight?.get(id) ?? 0;
    // Among equals the newest, which knows the least.
    const idlestFirst = staying.toReversed().toSorted((a, b) => load(a) - load(b));
    for (const one of idlestFirst.slice(0, Math.max(0, staying.length - count))) this.#stop(one);
  }

  async close(signal: AbortSignal): Promise<void> {
    this.#closed = true;
    for (const one of this.#staying()) this.#stop(one);
    const kill = (): void => {
      for (const { child } of this.#processes) child.kill("SIGKILL");
    };
    signal.addEventListener("abort", kill, { once: true });
    if (signal.aborted) kill();
    if (this.#processes.size > 0) await this.#allGone.promise;
    signal.removeEventListener("abort", kill);
  }

  /** The oldest first. */
  #staying(): readonly PoolWorkerProcess[] {
    return [...this.#processes].filter(({ stopping }) => !stopping);
  }

  #start({ demandSeenAt, decidedAt }: ScaleReason): void {
    const id = randomUUID();
    const { command, args, env } = this.#options.command({ id, demandSeenAt, decidedAt });
    // In a group of its own: Ctrl-C in a terminal is for us, and we end the processes in order.
    const child = spawn(command, args, { env, detached: true, stdio: "pipe" });
    const started = { id, child, startedAt: performance.now(), stopping: false };
    this.#processes.add(started);
    child.once("exit", (code, signal) => this.#exited(started, { code, signal }));
    child.on("error", (error) => {
      if (child.pid === undefined) this.#exited(started, { code: null, signal: null, error });
    });
    // That a process does not read is told by its exit.
    child.stdin.on("error", () => {});
    forEachLine(child.stdout, (line) => this.#options.onLine(id, "stdout", line));
    forEachLine(child.stderr, (line) => this.#options.onLine(id, "stderr", line));
  }

  #stop(one: PoolWorkerProcess): void {
    one.stopping = true;
    one.child.kill("SIGTERM");
    one.killTimer = setTimeout(() => one.child.kill("SIGKILL"), this.#options.graceMilliseconds);
  }

  #exited(
    one: PoolWorkerProcess,
    how: Pick<WorkerExit, "code" | "signal"> & { readonly error?: Error },
  ): void {
    clearTimeout(one.killTimer);
    this.#processes.delete(one);
    const lifetimeMilliseconds = performance.now() - one.startedAt;
    this.#options.onExit({ id: one.id, ...how, lifetimeMilliseconds, expected: one.stopping });
    if (this.#closed && this.#processes.size === 0) this.#allGone.resolve();
  }
}
