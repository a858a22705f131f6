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

/** A value of Redis stays far below its bound of 512 MiB. */
const bundleBytes = 16 * 1024 * 1024;

/** Several frames in few values, each frame behind its length. */
export function bundles(frames: readonly Buffer[]): Buffer[] {
  const values: Buffer[] = [];
  let parts: Buffer[] = [];
  let size = 0;
  for (const frame of frames) {
    if (size > 0 && size + frame.byteLength > bundleBytes) {
      values.push(Buffer.concat(parts));
      [parts, size] = [[], 0];
    }
    const length = Buffer.allocUnsafe(lengthBytes);
    length.writeUInt32LE(frame.byteLength, 0);
    parts.push(length, frame);
    size += frame.byteLength;
  }
  return [...values, Buffer.concat(parts)];
}

export function* unbundle(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at + lengthBytes <= bytes.byteLength;) {
    const start = at + lengthBytes;
    at = start + bytes.readUInt32LE(at);
    yield bytes.subarray(start, at);
  }
}
