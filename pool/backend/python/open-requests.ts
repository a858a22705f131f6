import type { Principal, WaitingExecution } from "../../../protocol/call.ts";
import type { InferenceError } from "../../../protocol/error.ts";
import type { ExecutionTimings } from "../../../serving/model-statistics.ts";
import type { PendingRequest } from "../../../serving/scheduler.ts";
import type { Receipt } from "./receipt.ts";

/** A batch that a process has, until each of its requests has its final answer. */
export interface Execution {
  readonly number: number;
  /** Of its requests, by which the process answers them. */
  readonly requestNumbers: readonly number[];
  /** Whom its requests are of; undefined where they are of several tenants. */
  readonly principal: Principal | undefined;
  readonly resolve: (timings: ExecutionTimings) => void;
  readonly reject: (error: InferenceError) => void;
  /** Requests that have no final answer yet. */
  open: number;
  answered: boolean;
  timings: ExecutionTimings | undefined;
  /** When the process had nothing else to execute before it. */
  beganAt: number;
  /** Made when its model first calls another. */
  caller: WaitingExecution | undefined;
}

/** A request that a process has and that has no final answer. */
export interface OpenRequest {
  readonly number: number;
  readonly execution: Execution;
  readonly pending: PendingRequest;
  /** Of one with several responses. */
  receipt: Receipt | undefined;
}

/** Numbers of requests that take the same place one after the other differ by a multiple of this. */
const mostPlaces = 2 ** 20;

/**
 * The requests that one process has, by numbers that it answers with. An answer that comes too late finds its place taken
 * by a request of another number.
 */
export class OpenRequests {
  readonly #places: (OpenRequest | undefined)[] = [];
  /** The numbers that the next requests get: each of a place that is free. */
  readonly #freeNumbers: number[] = [];

  get size(): number {
    return this.#places.length - this.#freeNumbers.length;
  }

  /** Of each request, in no order and as often as it has requests. */
  get executions(): readonly Execution[] {
    return this.#places.flatMap((place) => place?.execution ?? []);
  }

  /** A number for a request that is put there next. */
  number(): number {
    return this.#freeNumbers.pop() ?? this.#places.push(undefined) - 1;
  }

  put(request: OpenRequest): void {
    this.#places[request.number % mostPlaces] = request;
  }

  find(number: number): OpenRequest | undefined {
    const request = this.#places[number % mostPlaces];
    return request?.number === number ? request : undefined;
  }

  /** Those of a batch that are still open. */
  of({ requestNumbers }: Execution): readonly OpenRequest[] {
    return requestNumbers.flatMap((number) => this.find(number) ?? []);
  }

  /** It has its final answer, or will get it from somebody else. */
  close({ number, execution, pending, receipt }: OpenRequest): void {
    receipt?.close();
    this.#places[number % mostPlaces] = undefined;
    this.#freeNumbers.push(number + mostPlaces);
    pending.call.onCancel(undefined);
    execution.open--;
  }
}
