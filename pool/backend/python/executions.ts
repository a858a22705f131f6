import { randomUUID } from "node:crypto";
import { anonymous, type Principal, type WaitingExecution } from "../../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { InferenceResponse } from "../../../protocol/inference.ts";
import type { ServedModel } from "../../../protocol/served-model.ts";
import type { ExecutionTimings } from "../../../serving/model-statistics.ts";
import type { PendingRequest } from "../../../serving/scheduler.ts";
import { traceExecution } from "../../../serving/trace-execution.ts";
import { instancesId } from "../../instance/instances-id.ts";
import { type Execution, OpenRequests } from "./open-requests.ts";
import { Receipt } from "./receipt.ts";
import type { Reshape } from "./reshape.ts";
import type { ModelResponse } from "./responses.ts";

/** A batch that the process has got and not begun: whoever takes it over settles what waits for it. */
export interface UnbegunExecution {
  readonly requests: readonly PendingRequest[];
  readonly resolve: (timings: ExecutionTimings) => void;
  readonly reject: (error: InferenceError) => void;
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

const notAgain =
  "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured to handle such a flag.";
const noTimings: ExecutionTimings = {
  computeInputNanoseconds: 0,
  computeInferNanoseconds: 0,
  computeOutputNanoseconds: 0,
};

/**
 * The batches that one process has: those it executes, and requests that it goes on to answer when `execute` has
 * returned.
 */
export class Executions {
  readonly #options: ExecutionsOptions;
  /** In the order in which the process executes them. */
  readonly #running: Execution[] = [];
  readonly #requests = new OpenRequests();
  #nextExecution = 0;

  constructor(options: ExecutionsOptions) {
    this.#options = options;
  }

  /** Batches that are executed or wait for it. */
  get running(): number {
    return this.#running.length;
  }

  /** When the execution began that goes on now, in milliseconds of `performance.now()`; Infinity for none. */
  get busySince(): number {
    return this.#running[0]?.beganAt ?? Infinity;
  }

  /** Requests without a final answer. */
  get open(): number {
    return this.#requests.size;
  }

  /** Those who wait for an answer to what the model asks of others now: the execution that goes on, and its callers. */
  get callers(): readonly WaitingExecution[] {
    const [execution] = this.#running;
    if (!execution) return [];
    const open = this.#requests.of(execution);
    const before = open.flatMap(({ pending }) => pending.call.callers);
    execution.caller ??= this.#callerBehind(before);
    // What has come from another process is told anew with each request.
    return [...new Map([...before, execution.caller].map((one) => [one.id, one])).values()];
  }

  #callerBehind(before: readonly WaitingExecution[]): WaitingExecution {
    const { model } = this.#options;
    return {
      id: randomUUID(),
      instances: instancesId(model),
      modelName: model.name,
      modelVersion: model.version,
      depth: 1 + Math.max(0, ...before.map((caller) => caller.depth)),
    };
  }

  /**
   * On whose behalf the model asks others now; nobody's where that might be one of several tenants.
   *
   * @param executing the execution that goes on waits for it; otherwise any request without a final answer may
   */
  principal(executing: boolean): Principal {
    const [current] = this.#running;
    const executions = executing && current ? [current] : this.#unanswered;
    return commonPrincipal(executions.map(({ principal }) => principal)) ?? anonymous;
  }

  get #unanswered(): readonly Execution[] {
    return [...this.#running, ...this.#requests.executions];
  }

  begin(requests: readonly PendingRequest[]): BegunExecution {
    const { promise: done, resolve, reject } = Promise.withResolvers<ExecutionTimings>();
    const number = this.#nextExecution++;
    const requestNumbers = requests.map(() => this.#requests.number());
    const execution: Execution = {
      number,
      requestNumbers,
      principal: commonPrincipal(requests.map(({ call }) => call.principal)),
      resolve,
      reject,
      open: requests.length,
      answered: false,
      timings: undefined,
      beganAt: performance.now(),
      caller: undefined,
    };
    for (const [i, pending] of requests.entries()) {
      const own = requestNumbers[i] ?? 0;
      this.#requests.put({ number: own, execution, pending, receipt: undefined });
    }
    this.#running.push(execution);
    return { number, requestNumbers, done };
  }

  /**
   * `execute` has returned these responses, by the places of their requests in the batch.
   *
   * @param again places of those that the model is to be given again
   */
  returned(
    number: number,
    timings: ExecutionTimings,
    responses: readonly (readonly [index: number, response: ModelResponse])[],
    again: readonly number[] = [],
  ): void {
    const execution = this.#end(number);
    if (!execution) return;
    execution.timings = timings;
    this.#trace(execution, timings);
    for (const [index, response] of responses) {
      const request = execution.requestNumbers[index];
      if (request !== undefined) this.#respond(request, true, response);
    }
    for (const index of again) this.#again(execution.requestNumbers[index]);
    this.#settle(execution);
  }

  #again(number = -1): void {
    const request = this.#requests.find(number);
    if (!request) return;
    const { pending } = request;
    if (!pending.again) {
      this.#respond(number, true, { error: new InferenceError(StatusCode.Internal, notAgain) });
      return;
    }
    this.#requests.close(request);
    pending.again();
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
    if (final) this.#traceUntilNow(number);
    this.#respond(number, final, response);
    if (bytes === 0) return;
    const tell = (read: number): void => this.#options.onRead(number, read);
    const request = this.#requests.find(number);
    if (request) void (request.receipt ??= new Receipt(request.pending.sink, tell)).sent(bytes);
    else tell(bytes);
  }

  #respond(number: number, final: boolean, response?: ModelResponse): void {
    const request = this.#requests.find(number);
    if (!request) return;
    const { execution, pending } = request;
    execution.answered = true;
    const failed = response && "error" in response;
    // What comes after an error has nobody to go to.
    if (final || failed) this.#requests.close(request);
    if (failed) pending.sink.fail(response.error);
    else pending.sink.send(response && this.#response(pending, response), final);
    this.#settle(execution);
  }

  /** The model has thrown away its way to answer the request. */
  dropped(number: number): void {
    const text = `model '${this.#options.model.name}' has let go of the request without a final response`;
    this.#respond(number, true, { error: new InferenceError(StatusCode.Internal, text) });
  }

  /** Takes back all batches behind the one that is executed: nothing has been done for them. */
  takeUnbegun(): readonly UnbegunExecution[] {
    return this.#running.splice(1).map((execution) => {
      const open = this.#requests.of(execution);
      for (const request of open) this.#requests.close(request);
      const { resolve, reject } = execution;
      return { requests: open.map(({ pending }) => pending), resolve, reject };
    });
  }

  /** The process is gone. */
  failAll(error: InferenceError): void {
    const executions = new Set(this.#unanswered);
    this.#running.length = 0;
    for (const execution of executions) this.#fail(execution, error);
  }

  #end(number: number): Execution | undefined {
    const index = this.#running.findIndex((one) => one.number === number);
    const [ended] = index < 0 ? [] : this.#running.splice(index, 1);
    const [next] = this.#running;
    if (next) next.beganAt = performance.now();
    return ended;
  }

  #trace(execution: Execution, timings: ExecutionTimings): void {
    const requests = this.#requests.of(execution).map(({ pending }) => pending);
    traceExecution(requests, timings, performance.now() - timings.computeOutputNanoseconds / 1e6);
  }

  /** Of a request that is answered while `execute` goes on: nobody knows more of it than when that began. */
  #traceUntilNow(number: number): void {
    const request = this.#requests.find(number);
    if (!request || request.execution.timings || !request.pending.call.trace) return;
    const now = performance.now();
    const computeInferNanoseconds = (now - request.execution.beganAt) * 1e6;
    traceExecution([request.pending], { computeInputNanoseconds: 0, computeInferNanoseconds }, now);
  }

  #fail(execution: Execution, error: InferenceError): void {
    const open = this.#requests.of(execution);
    for (const request of open) this.#requests.close(request);
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

function commonPrincipal(principals: readonly (Principal | undefined)[]): Principal | undefined {
  const [first] = principals;
  return principals.every((one) => one?.tenant === first?.tenant) ? first : undefined;
}
