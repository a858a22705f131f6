const headerBytes = 8;
const alignment = 8;
/** Up to so many bytes are joined into one buffer: that costs less than one more of them. */
const joinedBytes = 65_536;

/** A frame as it came: what its head says, and the bytes behind it. */
export interface Frame {
  readonly head: unknown;
  readonly payload: Uint8Array;
}

/**
 * The parts of one message to a Python process: lengths, a JSON head, and tensors as raw bytes, each at a multiple of 8.
 *
 * @param head JSON text
 */
export function frameParts(head: string, payloads: readonly Uint8Array[]): readonly Uint8Array[] {
  const headBytes = padded(Buffer.byteLength(head));
  const payloadBytes = payloads.reduce((sum, { byteLength }) => sum + padded(byteLength), 0);
  const together = payloadBytes <= joinedBytes;
  const start = Buffer.alloc(headerBytes + headBytes + (together ? payloadBytes : 0));
  start.fill(" ", headerBytes, headerBytes + headBytes);
  start.write(head, headerBytes);
  start.writeUInt32LE(headBytes, 0);
  start.writeUInt32LE(payloadBytes, 4);
  if (!together) return [start, ...payloads.flatMap(withPadding)];
  let at = headerBytes + headBytes;
  for (const bytes of payloads) {
    start.set(bytes, at);
    at += padded(bytes.byteLength);
  }
  return [start];
}

function withPadding(bytes: Uint8Array): readonly Uint8Array[] {
  return [bytes, Buffer.alloc(padded(bytes.byteLength) - bytes.byteLength)];
}

/** The same length up to the next multiple of 8. */
export function padded(length: number): number {
  return Math.ceil(length / alignment) * alignment;
}

/** Cuts the bytes of a socket into frames. */
export class FrameReader {
  readonly #onFrame: (frame: Frame) => void;
  /** Bytes of a frame that is not whole yet. */
  #rest: Buffer | undefined;
  /** A long frame, and how much of it is there. */
  #long: Buffer | undefined;
  #longBytes = 0;

  /** @param onFrame gets views on what was pushed */
  constructor(onFrame: (frame: Frame) => void) {
    this.#onFrame = onFrame;
  }

  /** Throws for a head that is no JSON. */
  push(chunk: Buffer): void {
    let bytes = this.#long ? this.#continueLong(this.#long, chunk) : chunk;
    if (this.#rest) bytes = Buffer.concat([this.#rest, bytes]);
    this.#rest = undefined;
    let start = 0;
    for (;;) {
      const left = bytes.byteLength - start;
      const whole = left < headerBytes ? Infinity : frameBytes(bytes, start);
      if (left < whole) break;
      this.#tell(bytes, start);
      start += whole;
    }
    if (start < bytes.byteLength) this.#keep(bytes.subarray(start));
  }

  /** Gives what is left of the chunk. */
  #continueLong(long: Buffer, chunk: Buffer): Buffer {
    const taken = chunk.copy(long, this.#longBytes);
    this.#longBytes += taken;
    if (this.#longBytes === long.byteLength) {
      this.#long = undefined;
      this.#tell(long, 0);
    }
    return chunk.subarray(taken);
  }

  #keep(bytes: Buffer): void {
    const whole = bytes.byteLength < headerBytes ? 0 : frameBytes(bytes, 0);
    if (whole <= joinedBytes) {
      this.#rest = bytes;
      return;
    }
    this.#long = Buffer.allocUnsafeSlow(whole);
    this.#longBytes = bytes.copy(this.#long);
  }

  #tell(bytes: Buffer, start: number): void {
    const headEnd = start + headerBytes + bytes.readUInt32LE(start);
    const head: unknown = JSON.parse(bytes.toString("utf8", start + headerBytes, headEnd));
    this.#onFrame({ head, payload: bytes.subarray(headEnd, start + frameBytes(bytes, start)) });
  }
}

function frameBytes(bytes: Buffer, start: number): number {
  return headerBytes + bytes.readUInt32LE(start) + bytes.readUInt32LE(start + 4);
}
