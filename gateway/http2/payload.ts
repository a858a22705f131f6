import { ConnectionError, ErrorCode, Flag } from "./wire.ts";

/** The rules of RFC 9113, section 6, that hold for what stands in frames; all throw a ConnectionError. */

export function number32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A number whose first bit is reserved. */
export function number31(payload: Buffer): number {
  return payload.readUInt32BE() & 0x7f_ff_ff_ff;
}

/** What is left without the padding, if there is one. */
export function withoutPadding(payload: Buffer, flags: number): Buffer {
  if ((flags & Flag.Padded) === 0) return payload;
  const end = payload.length - (payload[0] ?? 0);
  if (end < 1) throw protocolError("padding: given more than there is payload");
  return payload.subarray(1, end);
}

/** What is left without the priority, which nobody looks at, if there is one. */
export function withoutPriority(payload: Buffer, flags: number, stream: number): Buffer {
  if ((flags & Flag.Priority) === 0) return payload;
  if (payload.length < 5) throw wrongLength("HEADERS");
  if (number31(payload) === stream) throw protocolError("HEADERS: given itself to depend on");
  return payload.subarray(5);
}

/** Some frames are for a stream, and others for the connection. */
export function expectStream(what: string, stream: number, expected: boolean): void {
  if (stream > 0 !== expected) throw protocolError(`${what}: given stream ${stream}`);
}

export function expectLength(what: string, payload: Buffer, expected: number): void {
  if (payload.length !== expected) throw wrongLength(what);
}

export function protocolError(text: string): ConnectionError {
  return new ConnectionError(ErrorCode.ProtocolError, text);
}

function wrongLength(what: string): ConnectionError {
  return new ConnectionError(
    ErrorCode.FrameSizeError,
    `${what}: given a payload of a wrong length`,
  );
}
