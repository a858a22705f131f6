import type { Call } from "../protocol/call.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { InferenceResponse, StreamedResponse } from "../protocol/inference.ts";
import { type Clock, systemClock } from "./clock.ts";
import type { ResponseSink } from "./scheduler.ts";

/** While more than this waits for the reader, those are asked to wait who can. */
const comfortableBytes = 1024 * 1024;
/** Once so much waits no more is taken: not everybody can be asked to wait, and a reader may never come. */
const mostBytes = 256 * 1024 * 1024;
/** What a response takes beside its tensors, roughly. */
const overheadBytes = 512;
/** A reader who takes nothing for so long while others wait for it: it may hold up a model for everybody. */
const patienceMilliseconds = 300_000;

/** Hands the responses of one request on to one reader as they come. */
export class ResponseStream implements ResponseSink {
  readonly #call: Call;
  readonly #clock: Clock;
  readonly #waiting: StreamedResponse[] = [];
  #waitingBytes = 0;
  #room: PromiseWithResolvers<void> | undefined;
  #ended = false;
  #error: InferenceError | undefined;
  #wake = (): void => {};
  #cancelTimer = (): void => {};

  /** @param call is cancelled when the reader is too slow */
  constructor(call: Call, clock: Clock = systemClock) {
    this.#call = call;
    this.#clock = clock;
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
      this.#cancelTimer();
      this.#room?.resolve();
    }
  }

  #push(next: StreamedResponse): void {
    if (this.#waitingBytes >= mostBytes) {
      this.#giveUp(`more than ${mostBytes} bytes`);
      return;
    }
    this.#waiting.push(next);
    this.#count(bytesOf(next));
  }

  /** @param given how much waits for the reader, or how long */
  #giveUp(given: string): void {
    const error = new InferenceError(
      StatusCode.Unavailable,
      `responses that the client has not read: given ${given}, expected a client that reads them`,
    );
    this.fail(error);
    this.#call.cancel(error);
  }

  #count(bytes: number): void {
    this.#waitingBytes += bytes;
    if (this.#waitingBytes > comfortableBytes) {
      if (!this.#room || bytes < 0) this.#expectReader();
      this.#room ??= Promise.withResolvers();
    } else {
      this.#cancelTimer();
      this.#room?.resolve();
      this.#room = undefined;
    }
  }

  #expectReader(): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.after(patienceMilliseconds, () => {
      this.#giveUp(`none read for ${patienceMilliseconds / 1000} s`);
    });
  }
}

function bytesOf({ response }: StreamedResponse): number {
  let bytes = overheadBytes;
  for (const output of response.outputs) bytes += output.bytes.byteLength;
  return bytes;
}
