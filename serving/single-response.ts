import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { InferenceResponse } from "../protocol/inference.ts";
import type { ResponseSink } from "./scheduler.ts";

/** Settles a promise with the only response of a request; none or several are an error of the model. */
export class SingleResponse implements ResponseSink {
  readonly #resolve: (response: InferenceResponse) => void;
  readonly #reject: (error: InferenceError) => void;
  #response: InferenceResponse | undefined;
  #count = 0;

  constructor(
    resolve: (response: InferenceResponse) => void,
    reject: (error: InferenceError) => void,
  ) {
    this.#resolve = resolve;
    this.#reject = reject;
  }

  send(response: InferenceResponse | undefined, final: boolean): void {
    if (response) {
      this.#response ??= response;
      this.#count++;
    }
    if (!final) return;
    if (this.#response && this.#count === 1) this.#resolve(this.#response);
    else
      this.fail(
        new InferenceError(StatusCode.Internal, `expected a single response, got ${this.#count}`),
      );
  }

  fail(error: InferenceError): void {
    this.#reject(error);
  }
}
