import {
  parentPort,
  receiveMessageOnPort,
  workerData,
  type MessagePort,
} from "node:worker_threads";
import { InferenceError } from "../../protocol/error.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { InstanceSettings, LoadedModel } from "../backend/backend.ts";
import { importBackend } from "../backend/backends.ts";
import { FrameReader, FrameWriter } from "./frame.ts";
import {
  readExecution,
  writeAnswer,
  type Answer,
  type Execution,
  type ThreadReady,
  type ThreadStart,
} from "./messages.ts";

/** Answers wait at most this long for the next ones, so that many short runs share one message. */
const gatherMilliseconds = 0.05;
/** For smaller buffers, freeing costs more than it gives. */
const freedBytes = 65_536;

/** Body of an instance's thread: opens the model, then runs what it is told to until the thread is ended from outside. */
async function main(port: MessagePort, { settings, doorbell }: ThreadStart): Promise<void> {
  let model: LoadedModel;
  try {
    model = await load(settings);
  } catch (error) {
    const { code, message } = InferenceError.from(error);
    port.postMessage({ loaded: false, code, message } satisfies ThreadReady);
    return;
  }
  const thread = new ModelThread(port, model);
  const bell = new Int32Array(doorbell);
  // Sleeping on the bell instead of in the event loop wakes 10 µs sooner. Nothing here needs an event loop.
  for (;;) {
    const heard = Atomics.load(bell, 0);
    thread.work();
    Atomics.wait(bell, 0, heard);
  }
}

/** A saved graph that does not open, or no longer, costs time and not the model. */
async function load({ savedGraph, ...settings }: InstanceSettings): Promise<LoadedModel> {
  const backend = await importBackend(settings.config);
  if (savedGraph === undefined) return backend.load(settings);
  return backend.load({ ...settings, savedGraph }).catch(() => backend.load(settings));
}

class ModelThread {
  readonly #port: MessagePort;
  readonly #model: LoadedModel;
  readonly #inputs: readonly string[];
  readonly #outputs: readonly string[];
  #answers = new FrameWriter();
  #gatheringSince = 0;

  constructor(port: MessagePort, model: LoadedModel) {
    this.#port = port;
    this.#model = model;
    this.#inputs = model.inputs.map(({ name }) => name);
    this.#outputs = model.outputs.map(({ name }) => name);
    port.postMessage({
      loaded: true,
      inputs: this.#inputs,
      outputs: this.#outputs,
    } satisfies ThreadReady);
  }

  /** Does all that is there. */
  work(): void {
    for (
      let received = receiveMessageOnPort(this.#port);
      received;
      received = receiveMessageOnPort(this.#port)
    ) {
      this.#runFrame(received.message);
    }
    this.#flush();
  }

  #runFrame(buffers: readonly ArrayBuffer[]): void {
    const frame = new FrameReader(buffers);
    while (!frame.done) {
      const started = performance.now();
      if (this.#answers.empty) this.#gatheringSince = started;
      const execution = readExecution(frame, this.#inputs, this.#outputs);
      writeAnswer(this.#answers, this.#answer(execution, started), this.#outputs);
      if (performance.now() - this.#gatheringSince > gatherMilliseconds) this.#flush();
    }
    free(buffers);
  }

  #answer({ id, inputs, outputs }: Execution<Tensor>, started: number): Answer {
    try {
      const ready = performance.now();
      const answer = this.#model.run(inputs, outputs);
      const inferNanoseconds = nanoseconds(performance.now() - ready);
      return {
        id,
        outputs: answer,
        inputNanoseconds: nanoseconds(ready - started),
        inferNanoseconds,
      };
    } catch (error) {
      return { id, error: InferenceError.from(error) };
    }
  }

  #flush(): void {
    if (this.#answers.empty) return;
    const buffers = this.#answers.finish();
    this.#answers = new FrameWriter();
    this.#port.postMessage(buffers, buffers);
  }
}

/** Left to the garbage collector, inputs of models that take images would pile up to tens of megabytes a thread. */
function free(buffers: readonly ArrayBuffer[]): void {
  for (const buffer of buffers) if (buffer.byteLength >= freedBytes) buffer.transfer(0);
}

function nanoseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1e6);
}

const start: ThreadStart = workerData;
if (parentPort) await main(parentPort, start);
