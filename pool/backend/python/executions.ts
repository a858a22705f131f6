import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { InferenceResponse } from "../../../protocol/inference.ts";
import type { WaitingExecution } from "../../../protocol/call.ts";
import type { ServedModel } from "../../../protocol/served-model.ts";
import type { ExecutionTimings } from "../../../serving/model-statistics.ts";
import type { PendingRequest } from "../../../serving/scheduler.ts";
import { traceExecution } from "../../../serving/trace-execution.ts";
import { Receipt } from "./receipt.ts";
import type { Reshape } from "./reshape.ts";
import type { ModelResponse } from "./responses.ts";

interface Execution {
  readonly number: number;
  /** Of its requests, by which the process answers them. */
  readonly requestNumbers: readonly number[];
  readonly resolve: (timings: ExecutionTimings) => void;
  readonly reject: (error: InferenceError) => void;
  /** Requests that have no final answer yet. */
  open: number;
  answered: boolean;
  timings: ExecutionTimings | undefined;
  /** Made when its model first calls another. */
  caller: WaitingExecution | undefined;
}

interface OpenRequest {
  readonly number: number;
  readonly execution: Execution;
  readonly pending: PendingRequest;
  /** Of one with several responses. */
  receipt: Receipt | undefined;
}

/** A batch that is to be sent to the process. */
export interface BegunExecution {
  readonly number: number;
  /** By which the process answers the requests. */
  readonly requestNumbers: readonly number[];
  /** Settles when every request has its final answer, or when none will get one. */
  readonly done: Promise<ExecutionTimings>;
}

export interface ExecutionsOptions {
  readonly model: ServedModel;
  readonly reshape: Reshape;
  /** The process need not count these bytes of the responses to a request any more. */
  readonly onRead: (request: number, bytes: number) => void;
}

/** A response as it comes from a sender, before the others or with the end of the request. */
export interface SentResponse {
  /** Undefined where only the request ends. */
  readonly response: ModelResponse | undefined;
  readonly final: boolean;
  /** What the process counts it for until it is read. */
  readonly bytes: number;
}

/** Numbers of requests that take the same place one after the other differ by a multiple of this. */
const mostPlaces = 2 ** 20;
const noTimings: ExecutionTimings = {
  computeInputNanoseconds: 0,
  computeInferNanoseconds: 0,
  computeOutputNanoseconds: 0,
};

/**
 * The batches that one process has: those it executes, and requests that it goes on to answer when `execute` has
 * returned. An answer that comes too late finds its place taken by a request of another number.
 */
export class Executions {
  readonly #options: ExecutionsOptions;
  /** In the order in which the process executes them. */
  readonly #running: Execution[] = [];
  readonly #places: (OpenRequest | undefined)[] = [];
  /** The numbers that the next requests get: each of a place that is free. */
  readonly #freeNumbers: number[] = [];
  #nextExecution = 0;

  constructor(options: ExecutionsOptions) {
    this.#options = options;
  }

  /** Batches that are executed or wait for it. */
  get running(): number {
    return this.#running.length;
  }

  /** Requests without a final answer. */
  get open(): number {
    return this.#places.length - this.#freeNumbers.length;
  }

  /** Those who wait for an answer to what the model asks of others now: the execution that goes on, and its callers. */
  get callers(): readonly WaitingExecution[] {
    const [execution] = this.#running;
    if (!execution) return [];
    const before = execution.requestNumbers.flatMap(
      (number) => this.#find(number)?.pending.call.callers ?? [],
    );
    const depth = 1 + Math.max(0, ...before.map((caller) => caller.depth));
    execution.caller ??= { model: this.#options.model, depth };
    return [...new Set([...before, execution.caller])];
  }

  begin(requests: readonly PendingRequest[]): BegunExecution {
    const { promise: done, resolve, reject } = Promise.withResolvers<ExecutionTimings>();
    const number = this.#nextExecution++;
    const requestNumbers = requests.map(
      () => this.#freeNumbers.pop() ?? this.#places.push(undefined) - 1,
    );
    const execution: Execution = {
      number,
      requestNumbers,
      resolve,
      reject,
      open: requests.length,
      answered: false,
      timings: undefined,
      caller: undefined,
    };
    for (const [i, pending] of requests.entries()) {
      const own = requestNumbers[i] ?? 0;
      this.#places[own % mostPlaces] = { number: own, execution, pending, receipt: undefined };
    }
    this.#running.push(execution);
    return { number, requestNumbers, done };
  }

  /** `execute` has returned these responses, by the places of their requests in the batch. */
  returned(
    number: number,
    timings: ExecutionTimings,
    responses: readonly (readonly [index: number, response: ModelResponse])[],
  ): void {
    const execution = this.#end(number);
    if (!execution) return;
    execution.timings = timings;
    this.#trace(execution, timings);
    for (const [index, response] of responses) {
      const request = execution.requestNumbers[index];
      if (request !== undefined) this.#respond(request, true, response);
    }
    this.#settle(execution);
  }

  /** `execute` has failed, and with it all that is not answered. */
  failed(number: number, timings: ExecutionTimings, error: InferenceError): void {
    const execution = this.#end(number);
    if (!execution) return;
    execution.timings = timings;
    this.#fail(execution, error);
  }

  /** A response to the request of that number has come from its sender. */
  respond(number: number, { response, final, bytes }: SentResponse): void {
    this.#respond(number, final, response);
    if (bytes === 0) return;
    const tell = (read: number): void => this.#options.onRead(number, read);
    const request = this.#find(number);
    if (request) void (request.receipt ??= new Receipt(request.pending.sink, tell)).sent(bytes);
    else tell(bytes);
  }

  #respond(number: number, final: boolean, response?: ModelResponse): void {
    const request = this.#find(number);
    if (!request) return;
    const { execution, pending } = request;
    execution.answered = true;
    const failed = response && "error" in response;
    // What comes after an error has nobody to go to.
    if (final || failed) this.#close(request);
    if (failed) pending.sink.fail(response.error);
    else pending.sink.send(response && this.#response(pending, response), final);
    this.#settle(execution);
  }

  /** The model has thrown away its way to answer the request. */
  dropped(number: number): void {
    const text = `model '${this.#options.model.name}' has let go of the request without a final response`;
    this.#respond(number, true, { error: new InferenceError(StatusCode.Internal, text) });
  }

  /** The process is gone. */
  failAll(error: InferenceError): void {
    const executions = new Set(this.#running.splice(0));
    for (const request of this.#places) if (request) executions.add(request.execution);
    for (const execution of executions) this.#fail(execution, error);
  }

  #end(number: number): Execution | undefined {
    const index = this.#running.findIndex((one) => one.number === number);
    return index < 0 ? undefined : this.#running.splice(index, 1)[0];
  }

  #trace({ requestNumbers }: Execution, timings: ExecutionTimings): void {
    const requests = requestNumbers.flatMap((number) => this.#find(number)?.pending ?? []);
    traceExecution(requests, timings, performance.now() - timings.computeOutputNanoseconds / 1e6);
  }

  #find(number: number): OpenRequest | undefined {
    const request = this.#places[number % mostPlaces];
    return request?.number === number ? request : undefined;
  }

  #close({ number, execution, pending, receipt }: OpenRequest): void {
    receipt?.close();
    this.#places[number % mostPlaces] = undefined;
    this.#freeNumbers.push(number + mostPlaces);
    pending.call.onCancel(undefined);
    execution.open--;
  }

  #fail(execution: Execution, error: InferenceError): void {
    const open = execution.requestNumbers.flatMap((number) => this.#find(number) ?? []);
    for (const request of open) this.#close(request);
    if (execution.answered) {
      for (const { pending } of open) pending.sink.fail(error);
      this.#settle(execution, execution.timings ?? noTimings);
    } else execution.reject(error);
  }

  #settle({ open, timings, resolve }: Execution, otherwise?: ExecutionTimings): void {
    const known = timings ?? otherwise;
    if (open === 0 && known) resolve(known);
  }

  #response(
    { request }: PendingRequest,
    { outputs, parameters }: Exclude<ModelResponse, { error: unknown }>,
  ): InferenceResponse {
    const { model, reshape } = this.#options;
    return {
      modelName: model.name,
      modelVersion: model.version,
      id: request.id,
      parameters,
      outputs: outputs.map((output) => reshape(output)),
    };
  }
}
