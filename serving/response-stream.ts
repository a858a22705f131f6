import type { Call } from "../protocol/call.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { InferenceResponse, StreamedResponse } from "../protocol/inference.ts";
import type { ResponseSink } from "./scheduler.ts";

/** While more than this waits for the reader, those are asked to wait who can. */
const comfortableBytes = 1024 * 1024;
/** Once so much waits no more is taken: not everybody can be asked to wait, and a reader may never come. */
const mostBytes = 256 * 1024 * 1024;
/** What a response takes beside its tensors, roughly. */
const overheadBytes = 512;

/** Hands the responses of one request on to one reader as they come. */
export class ResponseStream implements ResponseSink {
  readonly #call: Call;
  readonly #waiting: StreamedResponse[] = [];
  #waitingBytes = 0;
  #room: PromiseWithResolvers<void> | undefined;
  #ended = false;
  #error: InferenceError | undefined;
  #wake = (): void => {};

  /** @param call is cancelled when the reader is too slow for a model that does not wait */
  constructor(call: Call) {
    this.#call = call;
  }

  get room(): Promise<void> | undefined {
    return this.#room?.promise;
  }

  send(response: InferenceResponse | undefined, final: boolean): void {
    if (this.#ended) return;
    if (response) this.#push({ response, final });
    this.#ended ||= final;
    this.#wake();
  }

  fail(error: InferenceError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamedResponse> {
    try {
      for (;;) {
        for (const next of this.#waiting.splice(0)) {
          yield next;
          this.#count(-bytesOf(next));
        }
        if (this.#waiting.length > 0) continue;
        if (this.#error) throw this.#error;
        if (this.#ended) return;
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      this.#ended = true;
      this.#room?.resolve();
    }
  }

  #push(next: StreamedResponse): void {
    if (this.#waitingBytes >= mostBytes) {
      const error = new InferenceError(
        StatusCode.Unavailable,
        `responses that the client has not read: given more than ${mostBytes} bytes, expected a client that reads them`,
      );
      this.fail(error);
      this.#call.cancel(error);
      return;
    }
    this.#waiting.push(next);
    this.#count(bytesOf(next));
  }

  #count(bytes: number): void {
    this.#waitingBytes += bytes;
    if (this.#waitingBytes > comfortableBytes) {
      this.#room ??= Promise.withResolvers();
    } else {
      this.#room?.resolve();
      this.#room = undefined;
    }
  }
}

function bytesOf({ response }: StreamedResponse): number {
  let bytes = overheadBytes;
  for (const output of response.outputs) bytes += output.bytes.byteLength;
  return bytes;
}
