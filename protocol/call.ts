import type { ColdStartMarks } from "./cold-start.ts";
import { InferenceError, StatusCode } from "./error.ts";
import type { RequestTrace } from "./request-trace.ts";

/** Who calls. */
export interface Principal {
  readonly name: string;
  readonly tenant: string;
  /** How people know the caller; nothing is decided by it. */
  readonly title?: string;
}

/** The caller when the server asks for no keys. */
export const anonymous: Principal = { name: "anonymous", tenant: "default" };

/** An execution whose model waits for the answer to a call of its own, told so that another process understands it. */
export interface WaitingExecution {
  /** Unlike that of any other, wherever it runs. */
  readonly id: string;
  /** Names the instances of which it holds one. */
  readonly instances: string;
  readonly modelName: string;
  readonly modelVersion: string;
  /** How many such calls there are within each other, with this one. */
  readonly depth: number;
}

/** What a call was let in with; whoever let it in gives it back. */
export interface CallPermit {
  /** Says how many bytes its request has. Throws UNAVAILABLE when there is no room for them. */
  hold(bytes: number): void;
  /**
   * Counts the items of its request, before they are worked on. Throws or rejects with RESOURCE_EXHAUSTED when the caller may
   * have no more.
   */
  charge(items: number): void | Promise<void>;
  /** When a request for which there was no room may be tried again. */
  retryAfterSeconds(): number;
}

const nobody: readonly WaitingExecution[] = [];

type CancelListener = (reason: InferenceError) => void;

/**
 * What belongs to one call and to no tensor: who calls, until when, and whether they still listen.
 * The transport cancels it (hang-up, deadline); whoever holds the request listens and lets go.
 * An AbortSignal is made only for those who ask for one, because it costs more than the rest of the call.
 */
export class Call {
  /** Anonymous until the transport knows better, which is before anybody else gets the call. */
  principal: Principal;
  /** `performance.now()` when the first byte of the request was seen, in milliseconds. */
  readonly receivedAt: number;
  readonly traceparent: string | undefined;
  /** Set by who learns that the call waited until its version was started. */
  coldStart: ColdStartMarks | undefined;
  /** Set by the transport for calls that ask for work. */
  permit: CallPermit | undefined;
  /** Set for the few calls that are traced. */
  trace: RequestTrace | undefined;
  /** Executions that go on only when this call is answered: set for calls that models make. */
  callers: readonly WaitingExecution[] = nobody;
  #cancelled: InferenceError | undefined;
  #listener: CancelListener | undefined;
  #controller: AbortController | undefined;

  constructor(principal: Principal, receivedAt: number, traceparent?: string) {
    this.principal = principal;
    this.receivedAt = receivedAt;
    this.traceparent = traceparent;
  }

  /** A call for a part of this one, or in its place, which ends on its own. */
  part(): Call {
    const part = new Call(this.principal, this.receivedAt, this.traceparent);
    part.callers = this.callers;
    return part;
  }

  /** Why the call ended early, if it did. */
  get cancelled(): InferenceError | undefined {
    return this.#cancelled;
  }

  /** Ends the call early; only the first reason counts. */
  cancel(reason = new InferenceError(StatusCode.Cancelled, "request was cancelled")): void {
    if (this.#cancelled) return;
    this.#cancelled = reason;
    this.#controller?.abort(reason);
    this.#listener?.(reason);
  }

  /** Hands over who is told of a cancellation: the queue that holds the request now. At once if it already happened. */
  onCancel(listener: CancelListener | undefined): void {
    this.#listener = listener;
    if (listener && this.#cancelled) listener(this.#cancelled);
  }

  /** The same as a signal, for libraries that take one. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#cancelled) this.#controller.abort(this.#cancelled);
    return this.#controller.signal;
  }
}
