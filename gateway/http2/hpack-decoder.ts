import { type HeaderField, staticTable } from "./hpack-tables.ts";
import { decodeHuffman } from "./huffman.ts";
import { ConnectionError, ErrorCode, initial } from "./wire.ts";

/** What a field costs in a table or a list beside its text, by RFC 7541, section 4.1. */
const fieldBytes = 32;

/** No table may be larger: we never allow more than what both sides begin with. */
const maxTableBytes = initial.headerTableBytes;

/** Reads the header blocks of one connection, in their order (RFC 7541). */
export class HpackDecoder {
  readonly #maxListBytes: number;
  /** The newest is the last. */
  readonly #dynamic: HeaderField[] = [];
  #dynamicBytes = 0;
  #tableBytes: number = maxTableBytes;
  #block: Buffer = Buffer.alloc(0);
  #at = 0;
  #changes = 0;

  /** @param maxListBytes of a list of fields, each with 32 more than its text */
  constructor(maxListBytes: number) {
    this.#maxListBytes = maxListBytes;
  }

  /** Changes whenever the meaning of a block may have changed. */
  get changes(): number {
    return this.#changes;
  }

  /** The fields of a block; undefined where they are too many. Throws a ConnectionError where they cannot be read. */
  decode(block: Buffer): readonly HeaderField[] | undefined {
    this.#block = block;
    this.#at = 0;
    this.#resizes();
    const fields: HeaderField[] = [];
    let size = 0;
    while (this.#at < block.length) {
      const field = this.#field();
      size += sizeOf(field);
      if (size <= this.#maxListBytes) fields.push(field);
    }
    return size <= this.#maxListBytes ? fields : undefined;
  }

  /** They may stand only before the first field. */
  #resizes(): void {
    while (((this.#block[this.#at] ?? 0) & 0xe0) === 0x20) {
      const size = this.#integer(5);
      if (size > maxTableBytes) throw unreadable("a table larger than allowed");
      this.#tableBytes = size;
      this.#changes++;
      this.#evict(0);
    }
  }

  #field(): HeaderField {
    const kind = this.#block[this.#at] ?? 0;
    if (kind >= 0x80) return this.#indexed(this.#integer(7));
    if (kind >= 0x40) {
      const field = this.#literal(6);
      this.#add(field);
      return field;
    }
    if (kind >= 0x20) throw unreadable("a change of the table's size behind a field");
    return this.#literal(4);
  }

  /** @param bits of the index in the first byte */
  #literal(bits: number): HeaderField {
    const index = this.#integer(bits);
    const name = index === 0 ? this.#text() : this.#indexed(index).name;
    return { name, value: this.#text() };
  }

  #indexed(index: number): HeaderField {
    const field =
      index <= staticTable.length
        ? staticTable[index - 1]
        : this.#dynamic[this.#dynamic.length - (index - staticTable.length)];
    if (!field) throw unreadable("an index of nothing");
    return field;
  }

  #add(field: HeaderField): void {
    const size = sizeOf(field);
    this.#changes++;
    this.#evict(size);
    if (size > this.#tableBytes) return;
    this.#dynamic.push(field);
    this.#dynamicBytes += size;
  }

  /** Makes room. */
  #evict(bytes: number): void {
    while (this.#dynamicBytes + bytes > this.#tableBytes) {
      const oldest = this.#dynamic.shift();
      if (!oldest) return;
      this.#dynamicBytes -= sizeOf(oldest);
    }
  }

  #text(): string {
    const coded = (this.#block[this.#at] ?? 0) >= 0x80;
    const length = this.#integer(7);
    const start = this.#at;
    const end = start + length;
    if (end > this.#block.length) throw unreadable("a text longer than the block");
    this.#at = end;
    if (!coded) return this.#block.toString("latin1", start, end);
    const text = decodeHuffman(this.#block.subarray(start, end));
    if (text === undefined) throw unreadable("a text in no known code");
    return text;
  }

  /** RFC 7541, section 5.1. @param bits of it in the first byte */
  #integer(bits: number): number {
    const most = 2 ** bits - 1;
    const first = this.#byte() & most;
    if (first < most) return first;
    let value = most;
    for (let shift = 0; shift <= 21; shift += 7) {
      const byte = this.#byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw unreadable("a number that is too large");
  }

  #byte(): number {
    const byte = this.#block[this.#at++];
    if (byte === undefined) throw unreadable("an end amid a field");
    return byte;
  }
}

function sizeOf({ name, value }: HeaderField): number {
  return name.length + value.length + fieldBytes;
}

function unreadable(what: string): ConnectionError {
  return new ConnectionError(ErrorCode.CompressionError, `header block: ${what}`);
}
