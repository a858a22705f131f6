const two32 = 0x1_0000_0000;

/** Bytes of a number as a varint; the number is an integer from 0 to 2^53. */
export function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size += 1;
  return size;
}

/** Bytes of a field of so many bytes, with its tag of one byte and its length. */
export function fieldSize(length: number): number {
  return 1 + varintSize(length) + length;
}

/** For names, which are short: a call into the runtime would take longer. */
const shortText = 32;

function utf8Length(text: string): number {
  if (text.length > shortText) return Buffer.byteLength(text);
  for (let i = 0; i < text.length; i += 1) {
    if (text.charCodeAt(i) >= 0x80) return Buffer.byteLength(text);
  }
  return text.length;
}

/** Bytes of a text field. */
export function stringSize(text: string): number {
  return fieldSize(utf8Length(text));
}

/** The same for any 64-bit integer; negative ones take ten. */
export function bigVarintSize(value: bigint): number {
  let size = 1;
  for (let rest = BigInt.asUintN(64, value); rest >= 0x80n; rest >>= 7n) size += 1;
  return size;
}

/** Writes protobuf's wire format into a buffer that was measured before; tags are of one byte. */
export class WireWriter {
  readonly bytes: Buffer;
  position = 0;

  /** Takes the exact size: nothing checks it again. */
  constructor(size: number) {
    this.bytes = Buffer.allocUnsafe(size);
  }

  /** An integer from 0 to 2^53. */
  varint(value: number): void {
    let rest = value;
    for (; rest >= two32; rest = Math.floor(rest / 0x80)) this.#byte((rest % 0x80) | 0x80);
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#byte((rest & 0x7f) | 0x80);
    this.#byte(rest);
  }

  /** Tag and length of a field whose bytes follow. */
  head(tag: number, length: number): void {
    this.#byte(tag);
    this.varint(length);
  }

  bigVarint(tag: number, value: bigint): void {
    this.#byte(tag);
    let rest = BigInt.asUintN(64, value);
    for (; rest >= 0x80n; rest >>= 7n) this.#byte(Number(rest & 0x7fn) | 0x80);
    this.#byte(Number(rest));
  }

  double(tag: number, value: number): void {
    this.#byte(tag);
    this.position = this.bytes.writeDoubleLE(value, this.position);
  }

  /** A text field. */
  string(tag: number, text: string): void {
    const length = utf8Length(text);
    this.head(tag, length);
    if (length === text.length && length <= shortText) {
      for (let i = 0; i < length; i += 1) this.#byte(text.charCodeAt(i));
    } else this.position += this.bytes.write(text, this.position, length, "utf8");
  }

  raw(bytes: Uint8Array): void {
    this.bytes.set(bytes, this.position);
    this.position += bytes.length;
  }

  #byte(value: number): void {
    this.bytes[this.position] = value;
    this.position += 1;
  }
}
