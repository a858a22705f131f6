/** A frame that is to be written. */
export interface NewFrame {
  /** As `BundleWriter.head` gave it. */
  readonly head: number;
  /** JSON of what no other frame has; often "". */
  readonly own: string;
  readonly index: number;
  readonly number: number;
  readonly parts: readonly Uint8Array[];
}

/** A frame that was read. */
export interface Frame {
  /** The same object in all frames of a bundle that have the same. */
  readonly head: unknown;
  readonly own: unknown;
  /** Which request of an envelope it is or belongs to. */
  readonly index: number;
  /** Means what its writer and its reader agree upon. */
  readonly number: number;
  /** A view on the bundle. */
  readonly bytes: Buffer;
}

const lengthBytes = 4;
/** Numbers of its head and index, lengths of its own JSON and its bytes, its number. */
const frameHeadBytes = 4 + 4 + 4 + 8 + 8;

/**
 * Puts frames, each with a head of JSON and raw bytes behind it, into one run of bytes. Requests that one client sends have
 * the same heads, and so have their answers: each is written once, and parsed once.
 *
 * `<length, uint32 le><JSON: [common, head…]><frame…>`, a frame: `<head, index, length of own, uint32 le><length of bytes,
 * number, float64 le><own><bytes>`.
 */
export class BundleWriter {
  readonly #texts: string[];
  readonly #heads = new Map<string, number>();
  readonly #frames: NewFrame[] = [];

  /** @param common what is said of all frames; a frame can have it as its head, with the number 0 */
  constructor(common: object = {}) {
    this.#texts = [JSON.stringify(common)];
  }

  /** The number of a head, for the frames that have it. */
  head(value: object): number {
    const text = JSON.stringify(value);
    let head = this.#heads.get(text);
    if (head === undefined) {
      head = this.#texts.push(text) - 1;
      this.#heads.set(text, head);
    }
    return head;
  }

  add(frame: NewFrame): void {
    this.#frames.push(frame);
  }

  finish(): Buffer {
    const heads = `[${this.#texts.join(",")}]`;
    const headsBytes = Buffer.byteLength(heads);
    let size = lengthBytes + headsBytes;
    for (const frame of this.#frames) size += frameBytes(frame);
    const bundle = Buffer.allocUnsafe(size);
    bundle.writeUInt32LE(headsBytes, 0);
    bundle.write(heads, lengthBytes);
    let at = lengthBytes + headsBytes;
    for (const frame of this.#frames) at = writeFrame(bundle, at, frame);
    return bundle;
  }
}

function frameBytes({ own, parts }: NewFrame): number {
  return frameHeadBytes + (own === "" ? 0 : Buffer.byteLength(own)) + partsBytes(parts);
}

function partsBytes(parts: readonly Uint8Array[]): number {
  let size = 0;
  for (const part of parts) size += part.byteLength;
  return size;
}

/** Returns where the next one begins. */
function writeFrame(bundle: Buffer, start: number, frame: NewFrame): number {
  const { head, own, index, number, parts } = frame;
  const ownStart = start + frameHeadBytes;
  const ownBytes = own === "" ? 0 : bundle.write(own, ownStart);
  bundle.writeUInt32LE(head, start);
  bundle.writeUInt32LE(index, start + 4);
  bundle.writeUInt32LE(ownBytes, start + 8);
  bundle.writeDoubleLE(partsBytes(parts), start + 12);
  bundle.writeDoubleLE(number, start + 20);
  let at = ownStart + ownBytes;
  for (const part of parts) {
    bundle.set(part, at);
    at += part.byteLength;
  }
  return at;
}

/** What a `BundleWriter` was given. */
export interface Bundle {
  readonly common: unknown;
  readonly frames: readonly Frame[];
}

export function readBundle(bundle: Buffer): Bundle {
  let at = lengthBytes + bundle.readUInt32LE(0);
  const heads: readonly unknown[] = JSON.parse(bundle.toString("utf8", lengthBytes, at));
  const frames: Frame[] = [];
  while (at < bundle.byteLength) {
    const ownStart = at + frameHeadBytes;
    const start = ownStart + bundle.readUInt32LE(at + 8);
    const end = start + bundle.readDoubleLE(at + 12);
    frames.push({
      head: heads[bundle.readUInt32LE(at)],
      index: bundle.readUInt32LE(at + 4),
      number: bundle.readDoubleLE(at + 20),
      own: start > ownStart ? JSON.parse(bundle.toString("utf8", ownStart, start)) : undefined,
      bytes: bundle.subarray(start, end),
    });
    at = end;
  }
  return { common: heads[0], frames };
}
