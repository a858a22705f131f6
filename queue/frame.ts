const lengthBytes = 4;

/** A head of JSON and raw bytes behind it, as one run of bytes: `<length of the head, uint32 le><head><bytes…>`. */
export function writeFrame(head: unknown, parts: readonly Uint8Array[]): Buffer {
  const text = JSON.stringify(head);
  const headBytes = Buffer.byteLength(text);
  let size = lengthBytes + headBytes;
  for (const part of parts) size += part.byteLength;
  const frame = Buffer.allocUnsafe(size);
  frame.writeUInt32LE(headBytes, 0);
  frame.write(text, lengthBytes);
  let at = lengthBytes + headBytes;
  for (const part of parts) {
    frame.set(part, at);
    at += part.byteLength;
  }
  return frame;
}

/** What {@link writeFrame} was given; the bytes are a view. */
export interface Frame {
  readonly head: unknown;
  readonly bytes: Buffer;
}

export function readFrame(frame: Buffer): Frame {
  const end = lengthBytes + frame.readUInt32LE(0);
  const head: unknown = JSON.parse(frame.toString("utf8", lengthBytes, end));
  return { head, bytes: frame.subarray(end) };
}

/** Several frames as one value, each behind its length. */
export function bundle(frames: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [];
  for (const frame of frames) {
    const length = Buffer.allocUnsafe(lengthBytes);
    length.writeUInt32LE(frame.byteLength, 0);
    parts.push(length, frame);
  }
  return Buffer.concat(parts);
}

export function* unbundle(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at + lengthBytes <= bytes.byteLength;) {
    const start = at + lengthBytes;
    at = start + bytes.readUInt32LE(at);
    yield bytes.subarray(start, at);
  }
}
