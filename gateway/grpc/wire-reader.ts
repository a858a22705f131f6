import { isUtf8 } from "node:buffer";
import { InferenceError, StatusCode } from "../../protocol/error.ts";

/** How a field's value is laid out; the low three bits of its tag. */
export const WireType = {
  Varint: 0,
  Fixed64: 1,
  Bytes: 2,
  StartGroup: 3,
  EndGroup: 4,
  Fixed32: 5,
} as const;
export type WireType = (typeof WireType)[keyof typeof WireType];

const deepestGroup = 100;

const shortText = 32;

/** What every malformed message is answered with; the reference says no more either. */
export function malformed(): InferenceError {
  return new InferenceError(StatusCode.Internal, "Unable to parse request");
}

/**
 * Reads protobuf's wire format off one message: strings are decoded, bytes are views, nothing is copied.
 * Whatever does not fit inside the message, or inside the sub-message being read, throws {@link malformed}.
 */
export class WireReader {
  readonly bytes: Buffer;
  position = 0;
  #end: number;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
    this.#end = bytes.length;
  }

  /** True at the end of the message, or of the sub-message that was entered last. */
  get done(): boolean {
    return this.position >= this.#end;
  }

  /** Field number and wire type: `(field << 3) | wireType`. */
  tag(): number {
    const tag = this.uint32();
    if (tag >>> 3 === 0) throw malformed();
    return tag;
  }

  /** The low 32 bits of a varint. */
  uint32(): number {
    const first = this.#byte();
    if (first < 0x80) return first;
    let value = first & 0x7f;
    for (let shift = 7; shift < 70; shift += 7) {
      const byte = this.#byte();
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw malformed();
  }

  /** A varint of 64 bits. */
  uint64(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#byte();
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    throw malformed();
  }

  int64(): bigint {
    return BigInt.asIntN(64, this.uint64());
  }

  /** An int64 as a number, which is exact within ±2^53. */
  number(): number {
    const byte = this.bytes[this.position] ?? 0x80;
    if (byte >= 0x80 || this.done) return Number(this.int64());
    this.position += 1;
    return byte;
  }

  bool(): boolean {
    return this.uint64() !== 0n;
  }

  double(): number {
    const at = this.position;
    this.#advance(8);
    return this.bytes.readDoubleLE(at);
  }

  string(): string {
    const end = this.payload();
    if (end - this.position <= shortText) {
      const text = this.#ascii(end);
      if (text !== undefined) return text;
    }
    const text = this.bytes.toString("utf8", this.position, end);
    if (text.includes("\uFFFD") && !isUtf8(this.bytes.subarray(this.position, end))) {
      throw malformed();
    }
    this.position = end;
    return text;
  }

  /** A view. */
  view(): Buffer {
    const end = this.payload();
    const view = this.bytes.subarray(this.position, end);
    this.position = end;
    return view;
  }

  /** Reads a length and returns where what follows ends. */
  payload(): number {
    const length = this.uint32();
    const end = this.position + length;
    if (end > this.#end) throw malformed();
    return end;
  }

  /** From now on the reader ends where a sub-message does; give the result back to {@link leave}. */
  enter(): number {
    const outer = this.#end;
    this.#end = this.payload();
    return outer;
  }

  leave(outer: number): void {
    this.#end = outer;
  }

  /** Passes over the value of a field that nobody here knows. */
  skip(tag: number, depth = 0): void {
    switch (tag & 7) {
      case WireType.Varint:
        this.uint64();
        break;
      case WireType.Fixed64:
        this.#advance(8);
        break;
      case WireType.Bytes:
        this.position = this.payload();
        break;
      case WireType.StartGroup:
        this.#skipGroup(tag >>> 3, depth + 1);
        break;
      case WireType.Fixed32:
        this.#advance(4);
        break;
      default:
        throw malformed();
    }
  }

  #skipGroup(field: number, depth: number): void {
    if (depth > deepestGroup) throw malformed();
    for (;;) {
      const tag = this.tag();
      if ((tag & 7) !== WireType.EndGroup) this.skip(tag, depth);
      else if (tag >>> 3 === field) return;
      else throw malformed();
    }
  }

  /** For names, which are short: a call into the runtime would take longer. */
  #ascii(end: number): string | undefined {
    let text = "";
    for (let at = this.position; at < end; at += 1) {
      const byte = this.bytes[at] ?? 0x80;
      if (byte >= 0x80) return undefined;
      text += String.fromCharCode(byte);
    }
    this.position = end;
    return text;
  }

  #byte(): number {
    if (this.position >= this.#end) throw malformed();
    const byte = this.bytes[this.position] ?? 0;
    this.position += 1;
    return byte;
  }

  #advance(count: number): void {
    this.position += count;
    if (this.position > this.#end) throw malformed();
  }
}
