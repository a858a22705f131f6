import type { InferenceError } from "../protocol/error.ts";
import type { InferenceResponse } from "../protocol/inference.ts";
import type { Clock } from "../serving/clock.ts";
import type { ResponseSink } from "../serving/scheduler.ts";
import { contentBytes } from "./tensor-heads.ts";

/** So much that the client has read is worth a word to the pool worker; less than what that may have unread. */
const worthTellingBytes = 256 * 1024;
/** What a pool worker has not heard it is told again. */
const repeatMilliseconds = 1000;

export interface ReadReceiptOptions {
  readonly sink: ResponseSink;
  readonly clock: Clock;
  /** How many replies have come, all of which the sink has got or gets in this turn. */
  readonly replies: () => number;
  /** Tells the pool worker that the client has read up to this reply, by its number. */
  readonly tell: (number: number) => void;
}

/**
 * Stands before the sink of a request that is answered many times, and tells the pool worker how far its client has read:
 * a client that is slow holds up the model, instead of filling Redis and this gateway.
 */
export class ReadReceipt implements ResponseSink {
  readonly #options: ReadReceiptOptions;
  #untoldBytes = 0;
  #told = -1;
  /** Replies have come since the last look: the pool worker is not waiting. */
  #isFresh = false;
  #cancelRepeat: (() => void) | undefined;
  #waiting: Promise<void> | undefined;
  #isOver = false;

  constructor(options: ReadReceiptOptions) {
    this.#options = options;
  }

  send(response: InferenceResponse | undefined, final: boolean): void {
    const { sink } = this.#options;
    sink.send(response, final);
    if (final || !response) return;
    this.#untoldBytes += responseBytes(response);
    if (this.#isOver) return;
    this.#isFresh = true;
    this.#cancelRepeat ??= this.#repeatLater();
    if (sink.room) void this.#tellWhenRead(sink.room);
    else if (this.#untoldBytes >= worthTellingBytes) this.#tell();
  }

  fail(error: InferenceError): void {
    this.#options.sink.fail(error);
  }

  /** Nothing more comes. */
  end(): void {
    this.#isOver = true;
    this.#cancelRepeat?.();
  }

  async #tellWhenRead(room: Promise<void>): Promise<void> {
    if (this.#waiting === room) return;
    this.#waiting = room;
    await room;
    if (!this.#isOver) this.#tell();
  }

  #tell(): void {
    const { replies, tell } = this.#options;
    this.#untoldBytes = 0;
    this.#told = replies() - 1;
    tell(this.#told);
  }

  #repeatLater(): () => void {
    return this.#options.clock.after(repeatMilliseconds, () => {
      if (!this.#isFresh && this.#told >= 0) this.#options.tell(this.#told);
      this.#isFresh = false;
      this.#cancelRepeat = this.#repeatLater();
    });
  }
}

/** What a response counts for until it is read, here and at the pool worker. */
export function responseBytes(response: InferenceResponse): number {
  return overheadBytes + contentBytes(response.outputs, response);
}

const overheadBytes = 512;
