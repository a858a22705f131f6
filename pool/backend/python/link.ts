import { anonymous } from "../../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { ServedModel } from "../../../protocol/served-model.ts";
import type { ExecutionTimings } from "../../../serving/model-statistics.ts";
import type { PendingRequest } from "../../../serving/scheduler.ts";
import { Executions, type UnbegunExecution } from "./executions.ts";
import type { Frame } from "./frame.ts";
import { HeadReader } from "./head-reader.ts";
import type { InstanceIdentity, LinkSettings } from "./link-settings.ts";
import { modelArguments } from "./model-arguments.ts";
import { ModelCalls, readModelRequest } from "./model-calls.ts";
import { ModelLog } from "./model-log.ts";
import { ModelQuestions } from "./model-questions.ts";
import type { PythonOptions } from "./options.ts";
import { PythonProcess } from "./process.ts";
import { requestHead } from "./request-head.ts";
import { inputReshape, outputReshape, type Reshape } from "./reshape.ts";
import { readResponse } from "./responses.ts";
import { closeSharedMemory, openSharedMemory } from "./shared-memory.ts";
import { StartSteps } from "./start-steps.ts";
import { encodeTensors, TensorReader } from "./tensors.ts";
import { watchProcess } from "./watch.ts";

export interface LinkListener {
  /** An execution is over, and there may be room for another one. */
  executed(timings: ExecutionTimings): void;
  /** The process has ended without being told to. @param unbegun is the listener's from now on */
  gone(error: InferenceError, unbegun: readonly UnbegunExecution[]): void;
}

/** One life of one Python process, seen from the server: how it starts, what it is given, and why it ends. */
export class PythonLink {
  readonly #settings: LinkSettings;
  readonly #process: PythonProcess;
  readonly #memory = openSharedMemory();
  readonly #log: ModelLog;
  readonly #calls: ModelCalls;
  readonly #questions: ModelQuestions;
  readonly #start: StartSteps;
  readonly #stopWatching: () => void;
  #executions: Executions | undefined;
  #inputReshape: Reshape = (tensor) => tensor;
  #identity: InstanceIdentity | undefined;
  #listener: LinkListener | undefined;
  #closing = false;

  private constructor(settings: LinkSettings, options: PythonOptions) {
    this.#settings = settings;
    this.#log = new ModelLog(options.log, settings.modelName, settings.modelVersion);
    const { python, environment } = settings;
    this.#process = PythonProcess.start(
      { python, environment, memory: this.#memory },
      {
        received: (frame) => this.#received(frame),
        printed: (stream, line) => this.#log.printed(stream, line),
        gone: (cause) => this.#ended(cause),
      },
    );
    const send = (head: string, payloads?: readonly Uint8Array[]): void =>
      this.#process.send(head, payloads);
    this.#calls = new ModelCalls({ host: options.host, memory: this.#memory, send });
    this.#questions = new ModelQuestions({
      host: options.host,
      name: () => this.#identity?.name ?? settings.modelName,
      send,
    });
    this.#start = new StartSteps(this.#process, options.startTimeoutMilliseconds);
    this.#stopWatching = watchProcess(
      this.#process,
      options,
      () => this.#executions?.busySince ?? Infinity,
    );
  }

  /** Starts a process and has it import the model; rejects with the reason that it could not be. */
  static async open(settings: LinkSettings, options: PythonOptions): Promise<PythonLink> {
    const link = new PythonLink(settings, options);
    const { modelDirectory, versionDirectory, fileName, framework } = settings;
    const sharedBytes = link.#memory?.sizeBytes ?? 0;
    await link.#start.take("load", {
      modelDirectory,
      versionDirectory,
      fileName,
      framework,
      sharedBytes,
    });
    return link;
  }

  /** The config as JSON with what the model adds to it, or undefined for a model that adds nothing. */
  async complete(config: string): Promise<string | undefined> {
    const completed = await this.#start.take("complete", config);
    return typeof completed === "string" ? completed : undefined;
  }

  /** What a framework's file says of the model's tensors; null where it says nothing. */
  describe(config: string): Promise<unknown> {
    return this.#start.take("describe", config);
  }

  /** Has the model initialize; it can execute then. */
  async initialize(
    model: ServedModel,
    identity: InstanceIdentity,
    listener: LinkListener,
  ): Promise<void> {
    const { config, version } = model;
    this.#identity = identity;
    this.#log.named(identity.name);
    const outputs = config.output.map((output) => output.name);
    const decoupled = config.modelTransactionPolicy?.decoupled ?? false;
    const settings = {
      decoupled,
      outputs,
      fileName: `${version}/${this.#settings.fileName}`,
      name: identity.name,
    };
    await this.#start.take("initialize", modelArguments(model, identity, this.#settings), settings);
    this.#inputReshape = inputReshape(config);
    this.#executions = new Executions({
      model,
      reshape: outputReshape(config),
      onRead: (request, bytes) => this.#process.send(`["read",${request},${bytes}]`),
    });
    this.#listener = listener;
    this.#log.started();
  }

  /** Executions handed over and not returned. */
  get running(): number {
    return this.#executions?.running ?? 0;
  }

  /** True while its model waits for others, as long as they take. */
  get isCalling(): boolean {
    return this.#calls.areOpen;
  }

  /** Requests without a final answer. */
  get open(): number {
    return this.#executions?.open ?? 0;
  }

  /** Settles as `ModelInstance.execute` does. */
  execute(requests: readonly PendingRequest[]): Promise<ExecutionTimings> {
    const executions = this.#executions;
    if (!executions) throw new Error("initialize comes first");
    const { number, requestNumbers, done } = executions.begin(requests);
    const payloads: Uint8Array[] = [];
    const heads = requests.map((pending, i) => {
      const own = requestNumbers[i] ?? 0;
      pending.call.onCancel(() => this.#process.send(`["cancel",${own}]`));
      const inputs = pending.request.inputs.map((input) => this.#inputReshape(input));
      const encoded = encodeTensors(inputs, this.#memory);
      payloads.push(...encoded.payloads);
      return requestHead(own, pending, encoded.head);
    });
    this.#process.send(`["execute",${number},[${heads.join(",")}]]`, payloads);
    return done;
  }

  /** Lets the model finalize and ends the process; what still runs is given up. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#process.end();
  }

  #received({ head, payload }: Frame): void {
    const fields = new HeadReader(head);
    const kind = fields.text();
    const read = (offset: number): void => this.#process.send(`["free",[${offset}]]`);
    const tensors = new TensorReader(payload, this.#memory, read);
    if (kind === "executed") this.#executed(fields, tensors);
    else if (kind === "response") this.#responded(fields, tensors);
    else if (kind === "dropped") this.#executions?.dropped(fields.count());
    else if (kind === "free") this.#memory?.toProcess.free(fields.count());
    else if (kind === "done") this.#start.answered(fields);
    else if (kind === "log") this.#log.said(fields.text(), fields.text());
    else if (kind === "call") this.#called(fields, tensors);
    else if (kind === "cancel") this.#calls.cancel(fields.count());
    else this.#questions.received(kind, fields);
  }

  #executed(fields: HeadReader, tensors: TensorReader): void {
    const number = fields.count();
    const computeInputNanoseconds = fields.count();
    const computeInferNanoseconds = fields.count();
    const error = fields.optional((some) => some.text());
    const responses = fields.each((one) => {
      const response = one.list();
      return [response.count(), readResponse(response, tensors)] as const;
    });
    const computeOutputNanoseconds = fields.count();
    const timings = { computeInputNanoseconds, computeInferNanoseconds, computeOutputNanoseconds };
    const again = fields.done ? [] : fields.each((one) => one.count());
    if (error === undefined) this.#executions?.returned(number, timings, responses, again);
    else this.#executions?.failed(number, timings, this.#executionFailed(error));
    this.#listener?.executed(timings);
  }

  #executionFailed(message: string): InferenceError {
    const subject = `Failed to process the request(s) for model '${this.#identity?.name}'`;
    return new InferenceError(StatusCode.Internal, `${subject}, message: ${message}`);
  }

  #responded(fields: HeadReader, tensors: TensorReader): void {
    const request = fields.count();
    const final = fields.count() === 1;
    const response = fields.optional((some) => readResponse(some.list(), tensors));
    this.#executions?.respond(request, { response, final, bytes: fields.count() });
  }

  #called(fields: HeadReader, tensors: TensorReader): void {
    const number = fields.count();
    const decoupled = fields.boolean();
    const waits = fields.boolean();
    const request = readModelRequest(fields.list(), tensors);
    this.#calls.begin(number, decoupled, request, {
      principal: this.#executions?.principal(waits) ?? anonymous,
      callers: (waits && this.#executions?.callers) || [],
    });
  }

  #ended(cause: string): void {
    this.#stopWatching();
    this.#calls.close();
    this.#questions.close();
    closeSharedMemory(this.#memory);
    this.#start.ended(cause, this.#log.lastComplaint);
    const error = this.#died(cause);
    const unbegun = this.#closing ? [] : (this.#executions?.takeUnbegun() ?? []);
    this.#executions?.failAll(error);
    if (!this.#closing) this.#listener?.gone(error, unbegun);
  }

  #died(cause: string): InferenceError {
    const subject = `model '${this.#settings.modelName}': instance '${this.#identity?.name}'`;
    const text = this.#closing
      ? "was unloaded while it ran the request"
      : `died while it ran the request: ${cause}`;
    return new InferenceError(StatusCode.Unavailable, `${subject} ${text}`);
  }
}
