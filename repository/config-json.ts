import protobuf from "protobufjs";
import { invalidArgument } from "../protocol/error.ts";
import type { ModelConfig } from "../protocol/model-config.ts";
import {
  configError,
  maxNesting,
  type MessageNode,
  type TreeNode,
} from "./config-text/message-tree.ts";
import { messages } from "./proto-files.ts";
import { maxConfigLength, readConfig } from "./read-config.ts";

/**
 * Reads the JSON of a model config, as a load request may bring it: fields in snake_case or camelCase.
 * @throws INVALID_ARG with the path of the wrong value and what was expected there.
 */
export function parseConfigJson(text: string): ModelConfig {
  if (text.length > maxConfigLength) {
    throw configError(
      subject,
      `it has ${text.length} characters, at most ${maxConfigLength} are read`,
    );
  }
  const tree = treeOf(parseJson(text), "", 0);
  if (tree?.kind !== "message") throw configError(subject, "Root element must be a message.");
  return readConfig(tree, jsonSyntax);
}

/** The config as clients see it: proto spelling, every default printed, absent messages left out. */
export function configToJson(config: ModelConfig): Readonly<Record<string, unknown>> {
  return messageToJson(messages().type("ModelConfig"), { ...config });
}

const subject = "Invalid config override";

const jsonSyntax = { quotedScalars: true, camelCase: true, mapIsMessage: true, lastWins: true };

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : "not JSON";
    throw invalidArgument(`${subject}: ${reason}`, { cause });
  }
}

/** A JSON value as a tree; null stands for a field that is not there. */
function treeOf(json: unknown, path: string, depth: number): TreeNode | undefined {
  const where = path === "" ? subject : `${subject}: ${path}`;
  if (depth > maxNesting * 2)
    throw configError(subject, `values nest deeper than ${maxNesting * 2}`);
  if (json === null || json === undefined) return undefined;
  if (Array.isArray(json)) {
    const items = json.map((item, i) => treeOf(item, `${path}[${i}]`, depth + 1));
    return { kind: "list", items: items.filter((item) => item !== undefined), where };
  }
  if (typeof json === "object") return messageOf(json, path, depth);
  if (typeof json === "string") return { kind: "string", text: json, where };
  return { kind: typeof json === "number" ? "number" : "word", text: numeral(json), where };
}

function messageOf(json: object, path: string, depth: number): MessageNode {
  const fields = Object.entries(json).flatMap(([name, json_]) => {
    const at = path === "" ? name : `${path}.${name}`;
    const value = treeOf(json_, at, depth + 1);
    return value ? [{ name, value, where: value.where }] : [];
  });
  return { kind: "message", fields, where: path === "" ? subject : `${subject}: ${path}` };
}

/** Whole numbers without an exponent, so that 1e3 is an integer too. */
function numeral(value: unknown): string {
  if (typeof value !== "number" || !Number.isInteger(value)) return String(value);
  // Reading JSON has rounded the largest 64-bit numbers up to these.
  const isRounded = value === 2 ** 63 || value === 2 ** 64;
  return String(isRounded ? BigInt(value) - 1n : BigInt(value));
}

function messageToJson(
  type: protobuf.Type,
  message: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const printed = type.fieldsArray.map((field) => {
    const value = message[field.name];
    return [field.protoName, value === undefined ? undefined : fieldToJson(field.resolve(), value)];
  });
  return Object.fromEntries(printed.filter(([, value]) => value !== undefined));
}

function fieldToJson(field: protobuf.Field, value: unknown): unknown {
  const type = field.resolvedType;
  if (!(type instanceof protobuf.Type)) return value;
  if (Array.isArray(value)) return value.map((item) => messageToJson(type, asRecord(item)));
  if (!field.map) return messageToJson(type, asRecord(value));
  const entries = Object.entries(asRecord(value));
  return Object.fromEntries(
    entries.map(([key, item]) => [key, messageToJson(type, asRecord(item))]),
  );
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
