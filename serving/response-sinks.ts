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

/** Hands responses on to one reader as they come. */
export class ResponseStream implements ResponseSink {
  readonly #responses: InferenceResponse[] = [];
  #ended = false;
  #error: InferenceError | undefined;
  #wake = (): void => {};

  send(response: InferenceResponse | undefined, final: boolean): void {
    if (response) this.#responses.push(response);
    this.#ended ||= final;
    this.#wake();
  }

  fail(error: InferenceError): void {
    this.#error = error;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<InferenceResponse> {
    for (;;) {
      yield* this.#responses.splice(0);
      if (this.#responses.length > 0) continue;
      if (this.#error) throw this.#error;
      if (this.#ended) return;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
