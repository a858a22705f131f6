import { Worker } from "node:worker_threads";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { InstanceSettings } from "../backend/backend.ts";
import { FrameReader, FrameWriter } from "./frame.ts";
import {
  readAnswer,
  writeExecution,
  type Answer,
  type Execution,
  type TensorParts,
  type ThreadReady,
  type ThreadStart,
} from "./messages.ts";

const instanceThread = new URL("./instance-thread.ts", import.meta.url);

/** What a link tells its owner. */
export interface LinkListener {
  /** Everything that came in one message. */
  answered(answers: readonly Answer[]): void;
  /** The thread ended without being told to. Nothing more will come. */
  gone(cause: Error): void;
}

/** One life of one instance thread, seen from the main thread. */
export class ThreadLink {
  readonly #thread: Worker;
  readonly #bell: Int32Array;
  readonly #listener: LinkListener;
  #inputs: readonly string[] = [];
  #outputs: readonly string[] = [];
  #outgoing: FrameWriter | undefined;
  /** From the moment the model is loaded until the end. */
  #listening = false;

  private constructor(settings: InstanceSettings, listener: LinkListener, script: URL) {
    const doorbell = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    this.#bell = new Int32Array(doorbell);
    this.#listener = listener;
    this.#thread = new Worker(script, {
      name: `instance of ${settings.modelName}`,
      workerData: { settings, doorbell } satisfies ThreadStart,
    });
  }

  /** Starts a thread and waits until its model is loaded; rejects with the reason that it could not be. */
  static async open(
    settings: InstanceSettings,
    listener: LinkListener,
    script = instanceThread,
  ): Promise<ThreadLink> {
    const link = new ThreadLink(settings, listener, script);
    try {
      await link.#loaded();
    } catch (error) {
      await link.close();
      throw error;
    }
    return link;
  }

  #loaded(): Promise<void> {
    const thread = this.#thread;
    return new Promise((resolve, reject) => {
      thread.once("message", (ready: ThreadReady) => {
        if (!ready.loaded) {
          reject(new InferenceError(ready.code, ready.message));
          return;
        }
        this.#inputs = ready.inputs;
        this.#outputs = ready.outputs;
        this.#listening = true;
        thread.on("message", (buffers: readonly ArrayBuffer[]) => this.#receive(buffers));
        resolve();
      });
      const gone = (cause: Error): void => {
        reject(
          new InferenceError(
            StatusCode.Internal,
            "the instance's thread ended while it loaded the model",
            { cause },
          ),
        );
        this.#gone(cause);
      };
      thread.on("error", gone);
      thread.on("exit", (code) => gone(new Error(`exit code ${code}`)));
    });
  }

  /** True when the model has an input of that name. */
  takes(input: string): boolean {
    return this.#inputs.includes(input);
  }

  /** True when the model has an output of that name. */
  gives(output: string): boolean {
    return this.#outputs.includes(output);
  }

  /**
   * Hands an execution over; those of one turn go together. An idle thread hears of it as soon as this stack is done,
   * a busy one at the end of the turn, when more may have come.
   */
  send(execution: Execution<TensorParts>, idle: boolean): void {
    if (!this.#outgoing) {
      this.#outgoing = new FrameWriter();
      if (idle) queueMicrotask(() => this.#flush());
      else setImmediate(() => this.#flush());
    }
    writeExecution(this.#outgoing, execution, this.#inputs, this.#outputs);
  }

  #flush(): void {
    const buffers = this.#outgoing?.finish();
    this.#outgoing = undefined;
    if (!buffers || !this.#listening) return;
    this.#thread.postMessage(buffers, buffers);
    Atomics.add(this.#bell, 0, 1);
    Atomics.notify(this.#bell, 0);
  }

  #receive(buffers: readonly ArrayBuffer[]): void {
    const frame = new FrameReader(buffers);
    const answers: Answer[] = [];
    while (!frame.done) answers.push(readAnswer(frame, this.#outputs));
    this.#listener.answered(answers);
  }

  #gone(cause: Error): void {
    if (!this.#listening) return;
    this.#listening = false;
    this.#listener.gone(cause);
  }

  /** Ends the thread, whatever it does, and frees its memory. */
  async close(): Promise<void> {
    this.#listening = false;
    await this.#thread.terminate();
  }
}
