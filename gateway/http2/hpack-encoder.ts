import type { OutgoingHttpHeaders } from "node:http2";
import { staticTable } from "./hpack-tables.ts";

/**
 * A header block that needs no table of the peer's: fields of the static table by their index, all others as they are
 * (RFC 7541, section 6). So it may be made once and sent often, on any connection.
 */
export function encodeHeaders(headers: OutgoingHttpHeaders): Buffer {
  const pieces: Buffer[] = [];
  for (const [name, given] of Object.entries(headers)) {
    const values = Array.isArray(given) ? given : given === undefined ? [] : [given];
    for (const value of values) pieces.push(field(name.toLowerCase(), String(value)));
  }
  return Buffer.concat(pieces);
}

function field(name: string, value: string): Buffer {
  const index = staticTable.findIndex((known) => known.name === name && known.value === value);
  if (index >= 0) return Buffer.of(0x80 | (index + 1));
  return Buffer.concat([Buffer.of(0), text(name), text(value)]);
}

function text(given: string): Buffer {
  const bytes = Buffer.from(given, "latin1");
  return Buffer.concat([integer(bytes.length), bytes]);
}

/** With seven bits in the first byte, by RFC 7541, section 5.1. */
function integer(value: number): Buffer {
  if (value < 0x7f) return Buffer.of(value);
  const bytes = [0x7f];
  let left = value - 0x7f;
  for (; left >= 0x80; left >>>= 7) bytes.push((left & 0x7f) | 0x80);
  return Buffer.from([...bytes, left]);
}
