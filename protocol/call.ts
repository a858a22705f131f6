import type { ColdStartMarks } from "./cold-start.ts";
import { InferenceError, StatusCode } from "./error.ts";

/** Who calls. */
export interface Principal {
  readonly name: string;
  readonly tenant: string;
}

/** The caller when the server asks for no keys. */
export const anonymous: Principal = { name: "anonymous", tenant: "default" };

type CancelListener = (reason: InferenceError) => void;

/**
 * What belongs to one call and to no tensor: who calls, until when, and whether they still listen.
 * The transport cancels it (hang-up, deadline); whoever holds the request listens and lets go.
 * An AbortSignal is made only for those who ask for one, because it costs more than the rest of the call.
 */
export class Call {
  readonly principal: Principal;
  /** `performance.now()` when the first byte of the request was seen, in milliseconds. */
  readonly receivedAt: number;
  readonly traceparent: string | undefined;
  /** Set by who learns that the call waited until its version was started. */
  coldStart: ColdStartMarks | undefined;
  #cancelled: InferenceError | undefined;
  #listener: CancelListener | undefined;
  #controller: AbortController | undefined;

  constructor(principal: Principal, receivedAt: number, traceparent?: string) {
    this.principal = principal;
    this.receivedAt = receivedAt;
    this.traceparent = traceparent;
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
