import { ConnectionError, ErrorCode, Flag, frameHeadBytes, FrameType } from "./wire.ts";

/** A frame that came whole. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  /** 0 for the connection. */
  readonly stream: number;
  readonly payload: Buffer;
}

/** Takes what a reader finds. */
export interface FrameSink {
  /** A piece of a DATA frame without padding, as soon as it is there. @param ends the stream, with this piece */
  data(stream: number, piece: Buffer, ends: boolean): void;
  frame(frame: Frame): void;
}

/** One DATA frame may hold so much. */
export const maxFrameBytes = 1024 * 1024;

/** Any other frame may hold so much. */
const maxOtherBytes = 64 * 1024;

const nothing = Buffer.alloc(0);

/** Cuts the bytes of a connection into frames. Tensors are handed on as views of what was read, and never gathered here. */
export class FrameReader {
  readonly #sink: FrameSink;
  /** The beginning of a frame whose rest has not come. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #neededBytes = 0;
  /** The DATA frame whose payload is coming. */
  #dataStream = 0;
  #dataBytes = 0;
  #dataEnds = false;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** Throws a ConnectionError for bytes that cannot be a frame. */
  read(chunk: Buffer): void {
    const bytes = this.#heldBytes > 0 ? this.#joined(chunk) : chunk;
    if (!bytes) return;
    let at = 0;
    while (at < bytes.length) {
      const next = this.#dataBytes > 0 ? this.#data(bytes, at) : this.#next(bytes, at);
      if (next === at) return this.#hold(bytes.subarray(at));
      at = next;
    }
  }

  #joined(chunk: Buffer): Buffer | undefined {
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes < this.#neededBytes) return undefined;
    const joined = Buffer.concat(this.#held, this.#heldBytes);
    this.#held = [];
    this.#heldBytes = 0;
    return joined;
  }

  #hold(rest: Buffer): void {
    this.#held = [rest];
    this.#heldBytes = rest.length;
  }

  #data(bytes: Buffer, at: number): number {
    const end = Math.min(at + this.#dataBytes, bytes.length);
    this.#dataBytes -= end - at;
    const ends = this.#dataEnds && this.#dataBytes === 0;
    this.#sink.data(this.#dataStream, bytes.subarray(at, end), ends);
    return end;
  }

  /** Where the next frame begins, or the same place again where not all that is needed has come. */
  #next(bytes: Buffer, at: number): number {
    this.#neededBytes = frameHeadBytes;
    if (bytes.length - at < frameHeadBytes) return at;
    const length = bytes.readUIntBE(at, 3);
    const type = bytes.readUInt8(at + 3);
    const flags = bytes.readUInt8(at + 4);
    const stream = bytes.readUInt32BE(at + 5) & 0x7f_ff_ff_ff;
    const start = at + frameHeadBytes;
    checkLength(type, length);
    if (type === FrameType.Data && (flags & Flag.Padded) === 0) {
      const ends = (flags & Flag.EndStream) !== 0;
      if (length === 0) this.#sink.data(stream, nothing, ends);
      this.#dataStream = stream;
      this.#dataBytes = length;
      this.#dataEnds = ends;
      return start;
    }
    this.#neededBytes += length;
    if (bytes.length - start < length) return at;
    const payload = bytes.subarray(start, start + length);
    this.#sink.frame({ type, flags, stream, payload });
    return start + length;
  }
}

function checkLength(type: number, length: number): void {
  const bound = type === FrameType.Data ? maxFrameBytes : maxOtherBytes;
  if (length <= bound) return;
  const text = `frame of type ${type}: given ${length} bytes, expected ${bound} at most`;
  throw new ConnectionError(ErrorCode.FrameSizeError, text);
}
