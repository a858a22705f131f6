import {
  configError,
  type FieldNode,
  maxNesting,
  type MessageNode,
  type ScalarNode,
  type TreeNode,
} from "./message-tree.ts";
import { textTokens, type Token } from "./text-tokens.ts";

/** Reads protobuf text format into a tree; errors say file, line and what was expected there. */
export function parseTextFormat(text: string, fileName: string): MessageNode {
  return new TextParser(text, fileName).parse();
}

/** Recursive descent with one token of look-ahead. */
class TextParser {
  readonly #tokens: Iterator<Token, undefined>;
  #token: Token;
  #depth = 0;

  constructor(text: string, fileName: string) {
    this.#tokens = textTokens(text, fileName);
    this.#token = { kind: "end", text: "", where: fileName };
  }

  parse(): MessageNode {
    this.#advance();
    const where = this.#token.where;
    return { kind: "message", fields: this.#fieldsUntil("end"), where };
  }

  #advance(): Token {
    const token = this.#token;
    this.#token = this.#tokens.next().value ?? token;
    return token;
  }

  #skip(mark: string): boolean {
    const found = this.#token.kind === "punctuation" && this.#token.text === mark;
    if (found) this.#advance();
    return found;
  }

  #unexpected(expected: string): Error {
    const { kind, text, where } = this.#token;
    return configError(
      where,
      `expected ${expected}, got ${kind === "string" ? `"${text}"` : text}`,
    );
  }

  #fieldsUntil(close: "}" | ">" | "end"): readonly FieldNode[] {
    const fields: FieldNode[] = [];
    while (!this.#closes(close)) {
      fields.push(this.#field());
      if (!this.#skip(",")) this.#skip(";");
    }
    this.#advance();
    return fields;
  }

  #closes(close: "}" | ">" | "end"): boolean {
    if (close === "end") return this.#token.kind === "end";
    return this.#token.kind === "punctuation" && this.#token.text === close;
  }

  #field(): FieldNode {
    if (this.#token.kind !== "word") throw this.#unexpected("a field name");
    const { text: name, where } = this.#advance();
    if (this.#skip(":")) return { name, where, value: this.#value() };
    // Only messages may leave the colon out.
    const value = this.#startsScalar() ? undefined : this.#value();
    if (value === undefined || (value.kind === "list" && value.items.some(isScalar))) {
      throw configError(where, `expected ':' after the field name '${name}'`);
    }
    return { name, where, value };
  }

  #startsScalar(): boolean {
    return this.#token.kind !== "punctuation" || !"{<[".includes(this.#token.text);
  }

  #value(): TreeNode {
    const where = this.#token.where;
    if (!this.#skip("[")) return this.#single();
    const items: TreeNode[] = [];
    if (this.#skip("]")) return { kind: "list", items, where };
    do items.push(this.#single());
    while (this.#skip(","));
    if (!this.#skip("]")) throw this.#unexpected("',' or ']'");
    return { kind: "list", items, where };
  }

  #single(): TreeNode {
    const where = this.#token.where;
    const close = this.#skip("{") ? "}" : this.#skip("<") ? ">" : undefined;
    if (close === undefined) return this.#scalar();
    if (++this.#depth > maxNesting) {
      throw configError(where, `messages nest deeper than ${maxNesting}`);
    }
    const fields = this.#fieldsUntil(close);
    this.#depth--;
    return { kind: "message", fields, where };
  }

  #scalar(): ScalarNode {
    const sign = this.#skip("-") ? "-" : "";
    const { kind, text, where } = this.#token;
    if (kind === "string" && sign === "") return { kind, text: this.#adjacentStrings(), where };
    if (kind !== "number" && kind !== "word") throw this.#unexpected("a value");
    this.#advance();
    return { kind, text: sign + text, where };
  }

  /** Strings that follow each other are one string. */
  #adjacentStrings(): string {
    let text = "";
    while (this.#token.kind === "string") text += this.#advance().text;
    return text;
  }
}

function isScalar(node: TreeNode): boolean {
  return node.kind !== "message" && node.kind !== "list";
}
