import { ExactJsonReader, maxNesting, nestingError, parseError } from "./exact-json-reader.ts";

/** JSON that was read, and whether its numbers are exact. */
export interface JsonDocument {
  readonly root: unknown;
  /** False: from JSON.parse, which rounds integers beyond 2^53. True: those are bigints. */
  readonly exact: boolean;
}

/** Thrown by who meets a number that JSON.parse may have rounded where that matters. */
class InexactNumber extends Error {}
const inexactNumber = new InexactNumber("a number needs the exact reader");

/** Asks `readJson` to read again with exact numbers; to be called only where the document says that it is not. */
export function demandExactNumbers(): never {
  throw inexactNumber;
}

/**
 * Reads JSON text and hands it to `use`. JSON.parse does it wherever it can; our own reader takes over where an integer
 * beyond 2^53 matters, where NaN or Infinity stand (which the reference accepts), and to say what is wrong and where.
 */
export function readJson<T>(text: string, use: (document: JsonDocument) => T): T {
  if (nestsTooDeep(text)) throw nestingError();
  try {
    return use({ root: JSON.parse(text), exact: false });
  } catch (error) {
    if (error !== inexactNumber && !(error instanceof SyntaxError)) throw error;
  }
  return use({ root: new ExactJsonReader(text).read(), exact: true });
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/** The text of UTF-8 bytes; refuses others rather than replacing what it cannot read. */
export function decodeJson(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw parseError("Invalid encoding in string.", bytes.length);
  }
}

/** Few brackets cannot nest deep; only texts with many are walked. */
function nestsTooDeep(text: string): boolean {
  let brackets = 0;
  for (const open of ["[", "{"]) {
    let at = text.indexOf(open);
    while (at !== -1 && brackets <= maxNesting) {
      brackets += 1;
      at = text.indexOf(open, at + 1);
    }
  }
  return brackets > maxNesting && deepest(text) > maxNesting;
}

function deepest(text: string): number {
  let depth = 0;
  let most = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"') at = stringEnd(text, at);
    else if (char === "[" || char === "{") most = Math.max(most, (depth += 1));
    else if (char === "]" || char === "}") depth -= 1;
  }
  return most;
}

/** Where the string that begins at an offset ends. */
function stringEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at;
  }
  return text.length;
}
