import { type InferenceError, invalidArgument } from "./error.ts";
import { ExactJsonReader, parseError } from "./exact-json-reader.ts";
import { checkJsonBounds } from "./json-bounds.ts";

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

/** The exact reader takes up to half a second for so many, and nothing else is served meanwhile. */
const maxExactCharacters = 4 * 2 ** 20;

/**
 * Reads JSON text and hands it to `use`. JSON.parse does it wherever it can; our own reader takes over where an integer
 * beyond 2^53 matters, where NaN or Infinity stand (which the reference accepts), and to say what is wrong and where.
 */
export function readJson<T>(text: string, use: (document: JsonDocument) => T): T {
  checkJsonBounds(text);
  try {
    return use({ root: JSON.parse(text), exact: false });
  } catch (error) {
    if (error !== inexactNumber && !(error instanceof SyntaxError)) throw error;
  }
  if (text.length > maxExactCharacters) throw tooLongToReadExactly(text.length);
  return use({ root: new ExactJsonReader(text).read(), exact: true });
}

function tooLongToReadExactly(length: number): InferenceError {
  return invalidArgument(
    "the request's JSON is not valid, or has NaN, Infinity or integers beyond 2^53: " +
      `given ${length}, expected at most ${maxExactCharacters} characters of such JSON; send such data as binary tensors`,
  );
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
