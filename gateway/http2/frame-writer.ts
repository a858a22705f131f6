import type { Duplex } from "node:stream";
import { frameHeadBytes } from "./wire.ts";

/** Smaller payloads are copied behind their heads: that costs less than a piece more to write. */
const copyBytes = 4096;

const slabBytes = 16_384;

/** A head and its payload; the payload must not change afterwards. */
export interface OutgoingFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Uint8Array;
}

/** Writes frames: all those of one turn of the event loop leave together. */
export class FrameWriter {
  readonly #socket: Duplex;
  readonly #flush = (): void => this.flush();
  /** Written from its beginning on, and never again where it was written. */
  #slab = Buffer.alloc(0);
  #start = 0;
  #end = 0;
  #pieces: Uint8Array[] = [];
  #waitingBytes = 0;

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  /** What the system has not taken yet. */
  get unsentBytes(): number {
    return this.#waitingBytes + this.#socket.writableLength;
  }

  write({ type, flags, stream, payload }: OutgoingFrame): void {
    const { length } = payload;
    const copied = length < copyBytes;
    this.#reserve(frameHeadBytes + (copied ? length : 0));
    const slab = this.#slab;
    let at = slab.writeUIntBE(length, this.#end, 3);
    at = slab.writeUInt8(type, at);
    at = slab.writeUInt8(flags, at);
    at = slab.writeUInt32BE(stream, at);
    if (copied) {
      slab.set(payload, at);
      at += length;
    }
    this.#end = at;
    if (this.#waitingBytes === 0) process.nextTick(this.#flush);
    this.#waitingBytes += frameHeadBytes + length;
    if (copied) return;
    this.#cut();
    this.#pieces.push(payload);
  }

  flush(): void {
    this.#cut();
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#waitingBytes = 0;
    const socket = this.#socket;
    if (!socket.writable) return;
    const [only] = pieces;
    if (pieces.length === 1 && only) {
      socket.write(only);
      return;
    }
    socket.cork();
    for (const piece of pieces) socket.write(piece);
    socket.uncork();
  }

  #reserve(length: number): void {
    if (this.#slab.length - this.#end >= length) return;
    this.#cut();
    this.#slab = Buffer.allocUnsafeSlow(slabBytes);
    this.#start = 0;
    this.#end = 0;
  }

  #cut(): void {
    if (this.#start === this.#end) return;
    this.#pieces.push(this.#slab.subarray(this.#start, this.#end));
    this.#start = this.#end;
  }
}
