/** Tensors lie at multiples of this many bytes, so that any typed array can be laid over them. */
const alignment = 8;
const wordBytes = 8;

/**
 * Gathers numbers and bytes into one buffer that can be handed to another thread. Cloning objects between threads costs
 * more than running a small model; one transferred buffer costs a fifth of that. Read it back in the same order.
 */
export class FrameWriter {
  readonly #words: number[] = [];
  readonly #chunks: Uint8Array[] = [];
  readonly #offsets: number[] = [];
  readonly #attachments: ArrayBuffer[] = [];
  #payloadBytes = 0;

  get empty(): boolean {
    return this.#words.length === 0;
  }

  number(value: number): void {
    this.#words.push(value);
  }

  /** Copies the parts, one behind the other, as one run of bytes. */
  bytes(parts: readonly Uint8Array[]): void {
    const start = this.#payloadBytes;
    let end = start;
    for (const part of parts) {
      this.#chunks.push(part);
      this.#offsets.push(end);
      end += part.byteLength;
    }
    this.#words.push(start, end - start);
    this.#payloadBytes = Math.ceil(end / alignment) * alignment;
  }

  /** Gives the buffer away instead of copying it; it is no longer usable here once the frame is sent. */
  attach(buffer: ArrayBuffer): void {
    this.#attachments.push(buffer);
    this.#words.push(-this.#attachments.length, buffer.byteLength);
  }

  /** The buffers to transfer. */
  finish(): ArrayBuffer[] {
    const payloadStart = (1 + this.#words.length) * wordBytes;
    const frame = new ArrayBuffer(payloadStart + this.#payloadBytes);
    const words = new Float64Array(frame, 0, 1 + this.#words.length);
    words[0] = payloadStart;
    words.set(this.#words, 1);
    const payload = new Uint8Array(frame, payloadStart);
    for (const [i, chunk] of this.#chunks.entries()) payload.set(chunk, this.#offsets[i]);
    return [frame, ...this.#attachments];
  }
}

/** Reads what a `FrameWriter` wrote; the bytes are views on the buffers that were handed over. */
export class FrameReader {
  readonly #buffers: readonly ArrayBuffer[];
  readonly #words: Float64Array;
  #at = 1;

  constructor(buffers: readonly ArrayBuffer[]) {
    const frame = buffers[0] ?? new ArrayBuffer(wordBytes);
    const payloadStart = new Float64Array(frame, 0, 1)[0] ?? wordBytes;
    this.#buffers = buffers;
    this.#words = new Float64Array(frame, 0, payloadStart / wordBytes);
  }

  get done(): boolean {
    return this.#at >= this.#words.length;
  }

  number(): number {
    const value = this.#words[this.#at++];
    if (value === undefined) throw new RangeError("the frame ends here");
    return value;
  }

  bytes(): Uint8Array {
    const start = this.number();
    const length = this.number();
    const buffer = this.#buffers[start < 0 ? -start : 0];
    if (!buffer) throw new RangeError("the frame lacks an attachment");
    return new Uint8Array(buffer, start < 0 ? 0 : this.#words.byteLength + start, length);
  }
}
