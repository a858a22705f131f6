import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import { nearestName } from "../../repository/nearest-name.ts";
import { UsageError } from "../usage-error.ts";
import type { FieldType } from "./field-type.ts";

/** A place in a YAML file and what stands there. */
export interface YamlValue {
  /** As errors name it, as in `pools[1].max-workers`; empty for the whole file. */
  readonly path: string;
  /** Where its line starts to speak of it: a field's key, an item itself. */
  readonly offset: number;
  /** The node of the YAML tree; undefined for a field that is absent. */
  readonly node: unknown;
}

/** The fields of one mapping. */
export interface YamlFields<Key extends string> {
  /** A field, also where it is absent. */
  readonly at: (key: Key) => YamlValue;
  /** As `YamlReading.optional` of that field. */
  readonly optional: <Value>(key: Key, type: FieldType<Value>, byDefault: Value) => Value;
}

interface Problem {
  readonly line: number;
  readonly text: string;
}

const mostProblems = 50;

/** Our words where the package's own would not help. */
const rewordings: Readonly<Record<string, string>> = {
  BAD_ALIAS: "given an alias without a name; what starts with '*' needs quotes",
  MULTIPLE_DOCS: "given another document, expected one",
};

/**
 * One reading of a YAML file: gives its values by their places and collects all that is wrong with them.
 * Throws a UsageError at once for what is no YAML.
 */
export class YamlReading {
  readonly root: YamlValue;
  readonly #fileName: string;
  readonly #lines = new LineCounter();
  readonly #problems: Problem[] = [];

  constructor(text: string, fileName: string) {
    this.#fileName = fileName;
    const document = parseDocument(text, {
      lineCounter: this.#lines,
      schema: "core",
      prettyErrors: false,
      // Keys given twice are found with the other problems: the package compares every key with every other one.
      uniqueKeys: false,
    });
    for (const { code, message, pos } of [...document.errors, ...document.warnings]) {
      this.#addAt(pos[0], rewordings[code] ?? message);
    }
    this.throwProblems();
    this.root = { path: "", offset: 0, node: document.contents };
  }

  /** True for what has fields. */
  isMapping({ node }: YamlValue): boolean {
    return isMap(node);
  }

  /** A mapping's fields; undefined, and a problem, for what is no mapping. */
  fields<Key extends string>(
    mapping: YamlValue,
    known: readonly Key[],
  ): YamlFields<Key> | undefined {
    if (!isMap(mapping.node)) {
      this.refuse(mapping, `a mapping with ${known.join(", ")}`);
      return undefined;
    }
    const found = new Map<string, YamlValue>();
    for (const { key, value } of mapping.node.items) {
      const name = isScalar(key) ? String(key.value) : shown(key);
      const field = { path: under(mapping, name), offset: offsetOf(key, mapping), node: value };
      if (!known.some((one) => one === name)) this.#refuseKey(field, name, known);
      else if (found.has(name)) this.refuse(field, "once", "twice");
      else found.set(name, field);
    }
    const at = (key: Key): YamlValue =>
      found.get(key) ?? { path: under(mapping, key), offset: mapping.offset, node: undefined };
    return { at, optional: (key, type, byDefault) => this.optional(at(key), type, byDefault) };
  }

  /** The items of a list; none, and a problem, for what is no list of 1 to `most`. */
  items(list: YamlValue, most: number, called: string): readonly YamlValue[] {
    if (!isSeq(list.node) || list.node.items.length === 0 || list.node.items.length > most) {
      this.refuse(list, `a list of 1 to ${most} ${called}`);
      return [];
    }
    return list.node.items.map((node, index) => ({
      path: `${list.path}[${index}]`,
      offset: offsetOf(node, list),
      node,
    }));
  }

  /** The value of a field that must be there; undefined, and a problem, where it is absent or wrong. */
  required<Value>(field: YamlValue, type: FieldType<Value>): Value | undefined {
    const value = isScalar(field.node) ? type.parse(field.node.value) : undefined;
    if (value === undefined) this.refuse(field, type.expected);
    return value;
  }

  /** The value of a field that may be absent, and then is the default; where it is wrong, there is a problem, too. */
  optional<Value>(field: YamlValue, type: FieldType<Value>, byDefault: Value): Value {
    return field.node === undefined ? byDefault : (this.required(field, type) ?? byDefault);
  }

  /** Adds the problem that something else was expected at a place. */
  refuse(value: YamlValue, expected: string, given: string = shown(value.node)): void {
    const { line } = this.#lines.linePos(value.offset);
    const subject = value.path === "" ? "" : `${value.path}: `;
    const text = `${this.#fileName}:${line}: ${subject}given ${given}, expected ${expected}`;
    this.#problems.push({ line, text });
  }

  /** Throws a UsageError with all problems found so far, sorted by line; does nothing without any. */
  throwProblems(): void {
    const sorted = this.#problems.toSorted((a, b) => a.line - b.line).map(({ text }) => text);
    if (sorted.length === 0) return;
    const left = sorted.splice(mostProblems).length;
    if (left > 0) sorted.push(`and ${left} more`);
    throw new UsageError(sorted.join("\n"));
  }

  #refuseKey(field: YamlValue, name: string, known: readonly string[]): void {
    const meant = nearestName(name, known);
    const hint =
      meant === undefined ? `expected one of ${known.join(", ")}` : `did you mean ${meant}?`;
    this.#addAt(field.offset, `${field.path}: unknown key; ${hint}`);
  }

  #addAt(offset: number, message: string): void {
    const { line, col } = this.#lines.linePos(offset);
    this.#problems.push({ line, text: `${this.#fileName}:${line}:${col}: ${message}` });
  }
}

function under({ path }: YamlValue, key: string): string {
  const name = /^[\w-]{1,64}$/u.test(key) ? key : quoted(key);
  return path === "" ? name : `${path}.${name}`;
}

function offsetOf(node: unknown, parent: YamlValue): number {
  return (isNode(node) ? node.range?.[0] : undefined) ?? parent.offset;
}

/** A node as errors show what was given; an alias as itself, because none is ever followed. */
function shown(node: unknown): string {
  if (isMap(node)) return "a mapping";
  if (isSeq(node)) return `a list of ${node.items.length}`;
  if (isAlias(node)) return `the alias ${shortened(`*${node.source}`)}`;
  if (!isScalar(node) || node.value === null) return "nothing";
  return typeof node.value === "string" ? quoted(node.value) : shortened(node.source ?? "");
}

function quoted(text: string): string {
  return JSON.stringify(shortened(text));
}

function shortened(text: string): string {
  return text.length > 64 ? `${text.slice(0, 64)}…` : text;
}
