import { configError } from "./message-tree.ts";

/**
 * Resolves the escapes inside a text format string. `\x` and octal ones are bytes, which must make UTF-8 together.
 */
export function unescapeText(raw: string, where: string): string {
  if (!raw.includes("\\")) return raw;
  const bytes: number[] = [];
  let from = 0;
  for (const found of raw.matchAll(escape)) {
    pushText(bytes, raw.slice(from, found.index));
    const [whole, hex, octal, short, long, letter] = found;
    const point = short ?? long;
    if (hex !== undefined) bytes.push(Number.parseInt(hex, 16));
    else if (octal !== undefined) bytes.push(Number.parseInt(octal, 8) & 255);
    else if (point !== undefined) pushText(bytes, characterOf(point, where));
    else bytes.push(byteOf(letter ?? "", where));
    from = found.index + whole.length;
  }
  pushText(bytes, raw.slice(from));
  return decodeUtf8(bytes, where);
}

const escape = /\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))/gu;

function pushText(bytes: number[], text: string): void {
  for (const byte of new TextEncoder().encode(text)) bytes.push(byte);
}

function characterOf(hex: string, where: string): string {
  const point = Number.parseInt(hex, 16);
  if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) {
    throw configError(where, `escape \\u${hex} is not a Unicode character`);
  }
  return String.fromCodePoint(point);
}

const simple: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  f: 12,
  n: 10,
  r: 13,
  t: 9,
  v: 11,
  "?": 63,
  "\\": 92,
  "'": 39,
  '"': 34,
};

function byteOf(letter: string, where: string): number {
  const byte = Object.hasOwn(simple, letter) ? simple[letter] : undefined;
  if (byte === undefined) throw configError(where, `unknown escape '\\${letter}' in a string`);
  return byte;
}

function decodeUtf8(bytes: readonly number[], where: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
      Uint8Array.from(bytes),
    );
  } catch (cause) {
    throw configError(where, "the escapes of a string do not make valid UTF-8", cause);
  }
}
