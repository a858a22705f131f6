import { type InferenceError, invalidArgument } from "./error.ts";
import { jsonError } from "./json-access.ts";

/** How deep arrays and objects may nest. */
export const maxNesting = 100;

/** The reference's text for JSON that nests deeper. */
export function nestingError(): InferenceError {
  return invalidArgument(`JSON nesting depth exceeds maximum allowed limit (${maxNesting})`);
}

/** The reference's text for JSON that is none. */
export function parseError(text: string, offset: number): InferenceError {
  return jsonError(`failed to parse the request JSON buffer: ${text} at ${offset}`);
}

const words: Readonly<Record<string, readonly [string, unknown]>> = {
  t: ["true", true],
  f: ["false", false],
  n: ["null", null],
};

const escapes = new Set(['"', "\\", "/", "b", "f", "n", "r", "t"]);
const minInt64 = -(2n ** 63n);
const maxUint64 = 2n ** 64n - 1n;

/**
 * Reads JSON slowly and exactly: integers of 64 bits beyond 2^53 become bigints, NaN and Infinity are numbers,
 * and what is wrong is told with the reference's words and offset.
 */
export class ExactJsonReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): unknown {
    this.#skipSpace();
    if (this.#at === this.#text.length) throw this.#error("The document is empty.");
    const value = this.#value(0);
    this.#skipSpace();
    if (this.#at === this.#text.length) return value;
    throw this.#error("The document root must not be followed by other values.");
  }

  #value(depth: number): unknown {
    if (depth > maxNesting) throw nestingError();
    const char = this.#text[this.#at] ?? "";
    if (char === "{") return this.#object(depth);
    if (char === "[") return this.#array(depth);
    if (char === '"') return this.#string();
    const word = words[char];
    return word ? this.#word(word) : this.#number();
  }

  #object(depth: number): unknown {
    // Without a prototype a member named __proto__ is one like any other.
    const object: Record<string, unknown> = Object.create(null);
    this.#at += 1;
    this.#skipSpace();
    if (this.#take("}")) return object;
    for (;;) {
      if (this.#text[this.#at] !== '"') throw this.#error("Missing a name for object member.");
      const name = this.#string();
      this.#skipSpace();
      if (!this.#take(":")) throw this.#error("Missing a colon after a name of object member.");
      this.#skipSpace();
      object[name] = this.#value(depth + 1);
      this.#skipSpace();
      if (this.#take("}")) return object;
      if (!this.#take(",")) throw this.#error("Missing a comma or '}' after an object member.");
      this.#skipSpace();
    }
  }

  #array(depth: number): unknown {
    const array: unknown[] = [];
    this.#at += 1;
    this.#skipSpace();
    if (this.#take("]")) return array;
    for (;;) {
      array.push(this.#value(depth + 1));
      this.#skipSpace();
      if (this.#take("]")) return array;
      if (!this.#take(",")) throw this.#error("Missing a comma or ']' after an array element.");
      this.#skipSpace();
    }
  }

  #word([text, value]: readonly [string, unknown]): unknown {
    for (const char of text) {
      if (!this.#take(char)) throw this.#error("Invalid value.");
    }
    return value;
  }

  #number(): number | bigint {
    const start = this.#at;
    const negative = this.#take("-");
    if (this.#takeAll("NaN")) return NaN;
    if (this.#takeAll("Infinity") || this.#takeAll("Inf")) return negative ? -Infinity : Infinity;
    if (!this.#take("0") && !this.#digits()) throw this.#error("Invalid value.");
    const integerEnd = this.#at;
    this.#fraction();
    this.#exponent();
    const token = this.#text.slice(start, this.#at);
    const value = Number(token);
    if (!Number.isFinite(value)) throw parseError("Number too big to be stored in double.", start);
    const rounded = this.#at === integerEnd && !Number.isSafeInteger(value);
    return rounded ? exactInteger(token, value) : value;
  }

  #fraction(): void {
    if (this.#take(".") && !this.#digits()) throw this.#error("Miss fraction part in number.");
  }

  #exponent(): void {
    if (!this.#take("e") && !this.#take("E")) return;
    if (!this.#take("+")) this.#take("-");
    if (!this.#digits()) throw this.#error("Miss exponent in number.");
  }

  #string(): string {
    const start = this.#at;
    this.#at += 1;
    let plain = true;
    for (;;) {
      const char = this.#text[this.#at];
      if (char === undefined) throw this.#error("Missing a closing quotation mark in string.");
      if (char === '"') break;
      if (char < " ") throw this.#error("Invalid escape character in string.");
      if (char === "\\") {
        plain = false;
        this.#escape();
      } else this.#at += 1;
    }
    this.#at += 1;
    const token = this.#text.slice(start, this.#at);
    return plain ? token.slice(1, -1) : String(JSON.parse(token));
  }

  /** Steps over one escape sequence, or over the two of a surrogate pair. */
  #escape(): void {
    const start = this.#at;
    const kind = this.#text[start + 1] ?? "";
    if (kind !== "u") {
      if (!escapes.has(kind)) throw this.#error("Invalid escape character in string.");
      this.#at += 2;
      return;
    }
    const unit = this.#hexUnit(start, start);
    this.#at += 6;
    if (unit < 0xd800 || unit > 0xdfff) return;
    const paired = unit < 0xdc00 && this.#text.startsWith("\\u", this.#at);
    const second = paired ? this.#hexUnit(this.#at, start) : 0;
    if (second < 0xdc00 || second > 0xdfff) {
      throw parseError("The surrogate pair in string is invalid.", start);
    }
    this.#at += 6;
  }

  /** The number in `\uXXXX`; a complaint points to where the escape began. */
  #hexUnit(at: number, start: number): number {
    const digits = this.#text.slice(at + 2, at + 6);
    if (/^[\da-fA-F]{4}$/.test(digits)) return Number.parseInt(digits, 16);
    throw parseError("Incorrect hex digit after \\u escape in string.", start);
  }

  #digits(): boolean {
    const start = this.#at;
    while (isDigit(this.#text.charCodeAt(this.#at))) this.#at += 1;
    return this.#at > start;
  }

  #skipSpace(): void {
    while (isSpace(this.#text.charCodeAt(this.#at))) this.#at += 1;
  }

  #take(char: string): boolean {
    if (this.#text[this.#at] !== char) return false;
    this.#at += 1;
    return true;
  }

  #takeAll(word: string): boolean {
    if (!this.#text.startsWith(word, this.#at)) return false;
    this.#at += word.length;
    return true;
  }

  #error(text: string): InferenceError {
    return parseError(text, this.#at);
  }
}

/** Takes a UTF-16 unit, or NaN behind the end. */
function isSpace(unit: number): boolean {
  return unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09;
}

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}

/** Beyond 64 bits there is nothing exact to keep; the reference reads a double there, too. */
function exactInteger(token: string, rounded: number): number | bigint {
  if (rounded < -(2 ** 64) || rounded > 2 ** 65) return rounded;
  const exact = BigInt(token);
  return exact >= minInt64 && exact <= maxUint64 ? exact : rounded;
}
