import type { Call, WaitingExecution } from "../../protocol/call.ts";
import type { InferenceError } from "../../protocol/error.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import { aboutRequest } from "../../protocol/request-label.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import type { PendingRequest } from "../scheduler.ts";

/**
 * Equal requests that wait for one answer: the first of them is run for all. Each keeps its own cancellation: when the
 * first leaves, the next takes its place, and only when all have left is the run itself taken back.
 */
export class Flight {
  /** The one that is run. */
  readonly leader: PendingRequest;
  /** Of the run: it belongs to nobody's connection. */
  readonly call: Call;
  readonly #onLeave: (pending: PendingRequest) => void;
  readonly #waiting = new Set<PendingRequest>();
  #abandoned = false;
  #running = false;

  /** @param onLeave called for each that leaves before there is an answer, but for one whose run is taken back */
  constructor(leader: PendingRequest, onLeave: (pending: PendingRequest) => void) {
    this.leader = leader;
    this.call = leader.call.part();
    this.call.trace = leader.call.trace;
    this.#onLeave = onLeave;
  }

  /** True for one that would not wait longer, or behind others, for this answer than for one of its own. */
  suits(pending: PendingRequest): boolean {
    const { leader } = this;
    if (this.#abandoned || pending.request.priority !== leader.request.priority) return false;
    // The run might be what waits for this request.
    if (pending.call.callers.some((caller) => isOf(caller, leader.request.model))) return false;
    return deadlineOf(pending) >= deadlineOf(leader);
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  join(pending: PendingRequest): void {
    this.#waiting.add(pending);
    // It may have been cancelled already.
    pending.call.onCancel((reason) => this.#leave(pending, reason));
  }

  /** False when nobody is left to run it for. */
  run(): boolean {
    this.#running = true;
    return !this.#abandoned;
  }

  /** Those who still wait, the one that the run is counted for first. They are the caller's from now on. */
  land(): readonly PendingRequest[] {
    const waiting = [...this.#waiting];
    for (const { call } of waiting) {
      call.onCancel(undefined);
      call.coldStart ??= this.call.coldStart;
    }
    return waiting;
  }

  #leave(pending: PendingRequest, reason: InferenceError): void {
    this.#abandoned = this.#waiting.size === 1;
    if (this.#abandoned && this.#running) {
      // Who runs it counts that, and answers.
      this.call.cancel(reason);
      return;
    }
    this.#waiting.delete(pending);
    this.#onLeave(pending);
    pending.sink.fail(aboutRequest(pending.request.id, reason));
  }
}

function isOf({ modelName, modelVersion }: WaitingExecution, model: ServedModel): boolean {
  return modelName === model.name && modelVersion === model.version;
}

/** The same answer for another request. */
export function answerTo(
  { request }: PendingRequest,
  { modelName, modelVersion, outputs, parameters }: Omit<InferenceResponse, "id">,
): InferenceResponse {
  return { modelName, modelVersion, id: request.id, outputs, parameters };
}

/** When its time in queues is over. */
function deadlineOf({ request, enqueuedAt }: PendingRequest): number {
  const { timeoutMicroseconds } = request;
  return timeoutMicroseconds > 0 ? enqueuedAt + timeoutMicroseconds / 1000 : Infinity;
}
