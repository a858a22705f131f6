import { configError } from "./message-tree.ts";
import { unescapeText } from "./text-escapes.ts";

export interface Token {
  readonly kind: "string" | "number" | "word" | "punctuation" | "end";
  /** A string without its quotes, escapes resolved. */
  readonly text: string;
  readonly where: string;
}

/** Cuts protobuf text format into its words; an end token closes them. */
export function* textTokens(text: string, fileName: string): Generator<Token, undefined> {
  let line = 1;
  for (let at = 0; at < text.length;) {
    const where = `${fileName}:${line}`;
    pattern.lastIndex = at;
    const [found, space, string, number, word] = pattern.exec(text) ?? [];
    if (found === undefined) throw unexpectedCharacter(text.charAt(at), where);
    at += found.length;
    if (space !== undefined) {
      line += space.split("\n").length - 1;
    } else if (string !== undefined) {
      yield { kind: "string", text: unescapeText(string.slice(1, -1), where), where };
    } else if (number !== undefined) {
      yield { kind: "number", text: number, where };
    } else {
      yield { kind: word === undefined ? "punctuation" : "word", text: found, where };
    }
  }
  yield { kind: "end", text: "the end of the file", where: `${fileName}:${line}` };
}

/** In turn: space or a comment, a string, a number, a word, a punctuation mark. */
const pattern =
  /(\s+|#.*)|("[^"\\\n]*(?:\\.[^"\\\n]*)*"|'[^'\\\n]*(?:\\.[^'\\\n]*)*')|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\w*)|([A-Za-z_]\w*)|([{}<>[\]:,;-])/y;

function unexpectedCharacter(character: string, where: string): Error {
  const isQuote = character === '"' || character === "'";
  return configError(
    where,
    isQuote ? "the string has no closing quote on its line" : `unexpected character '${character}'`,
  );
}
