import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Frame, FrameReader, frameParts } from "./frame.ts";
import { onLines } from "./lines.ts";
import type { SharedMemory } from "./shared-memory.ts";

export interface PythonProcessOptions {
  /** The interpreter. */
  readonly python: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly memory: SharedMemory | undefined;
}

export interface PythonProcessListener {
  received(frame: Frame): void;
  printed(stream: "stdout" | "stderr", line: string): void;
  /** It has ended, and nothing more will come. Told once. */
  gone(cause: string): void;
}

const runner = fileURLToPath(new URL("../../python/runner.py", import.meta.url));
/** A model's `finalize` may take so long. */
const finalizeMilliseconds = 10_000;
/** Whoever still holds the socket when the process is gone. */
const lingerMilliseconds = 1000;
const requestsNumber = 3;
const answersNumber = 7;

/**
 * A Python process with a socket to it, and another one from it: a write to a process that has just died closes its socket,
 * and must not lose what the process had answered before. Nothing of it outlives this process: the system ends it, and whatever it has
 * started, when its lifeline breaks.
 */
export class PythonProcess {
  readonly #child: ChildProcess;
  readonly #requests: Socket;
  readonly #listener: PythonProcessListener;
  readonly #ended = Promise.withResolvers<void>();
  #cause: string | undefined;
  #ending = false;

  private constructor(
    child: ChildProcess,
    [requests, answers]: readonly [Socket, Socket],
    listener: PythonProcessListener,
  ) {
    this.#child = child;
    this.#requests = requests;
    this.#listener = listener;
    const frames = new FrameReader((frame) => listener.received(frame));
    answers.on("data", (chunk: Buffer) => this.#read(frames, chunk));
    // Why it ended, its exit tells.
    for (const socket of [requests, answers]) socket.on("error", () => {});
    const closed = new Promise((resolve) => answers.once("close", resolve));
    child.once("error", (error) => {
      const reason = "code" in error ? String(error.code) : "unknown error";
      void this.#gone(`it cannot be started (${reason}); see --python`, closed);
    });
    child.once("exit", (code, signal) => {
      void this.#gone(signal ? `killed by ${signal}` : `ended with exit code ${code}`, closed);
    });
    for (const name of ["stdout", "stderr"] as const) {
      const stream = child[name];
      if (stream) onLines(stream, (line) => listener.printed(name, line));
    }
  }

  static start(options: PythonProcessOptions, listener: PythonProcessListener): PythonProcess {
    const { python, environment, memory } = options;
    const child = spawn(python, [runner], {
      env: environment,
      // A group of its own, so that it ends together with what the model starts.
      detached: true,
      stdio: [
        "ignore",
        "pipe",
        "pipe",
        "pipe",
        "pipe",
        memory?.toProcess.fileDescriptor ?? "ignore",
        memory?.fromProcess.fileDescriptor ?? "ignore",
        "pipe",
      ],
    });
    const sockets = [socketOf(child, requestsNumber), socketOf(child, answersNumber)] as const;
    return new PythonProcess(child, sockets, listener);
  }

  /** The process's id, if it could be started. */
  get id(): number | undefined {
    return this.#child.pid;
  }

  /** @param head JSON text */
  send(head: string, payloads: readonly Uint8Array[] = []): void {
    if (this.#cause !== undefined || this.#requests.destroyed) return;
    const parts = frameParts(head, payloads);
    if (parts.length > 1) this.#requests.cork();
    for (const part of parts) this.#requests.write(part);
    if (parts.length > 1) this.#requests.uncork();
  }

  /** Ends it at once; the reason is what the listener is told. */
  kill(reason: string): void {
    this.#cause ??= reason;
    this.#killGroup();
  }

  /** Lets the model finalize, and ends it when that takes too long. Resolves when the process is gone. */
  async end(): Promise<void> {
    if (this.#ending) return this.#ended.promise;
    this.#ending = true;
    this.send('["finalize"]');
    const late = new AbortController();
    const overdue = sleep(finalizeMilliseconds, undefined, { signal: late.signal, ref: false });
    await Promise.race([this.#ended.promise, overdue.catch(() => {})]);
    late.abort();
    this.kill("its finalize took too long");
    await this.#ended.promise;
  }

  #read(frames: FrameReader, chunk: Buffer): void {
    try {
      frames.push(chunk);
    } catch {
      this.kill("it sent what is no message");
    }
  }

  async #gone(cause: string, closed: Promise<unknown>): Promise<void> {
    const told = this.#cause ?? cause;
    // Its own end may have left others of its group.
    this.#killGroup();
    await Promise.race([closed, sleep(lingerMilliseconds, undefined, { ref: false })]);
    this.#cause = told;
    for (const stream of this.#child.stdio) stream?.destroy();
    this.#ended.resolve();
    this.#listener.gone(told);
  }

  #killGroup(): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // Nobody is left.
    }
  }
}

function socketOf(child: ChildProcess, number: number): Socket {
  const stream: unknown = child.stdio[number];
  if (!(stream instanceof Socket)) throw new Error("a pipe of a child process is a socket");
  return stream;
}
