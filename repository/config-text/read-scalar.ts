import protobuf from "protobufjs";
import { configError, type ScalarNode, type TreeNode } from "./message-tree.ts";

/** How a syntax writes scalars: JSON puts numbers, booleans and enum names in quotes where it likes. */
export interface ScalarSyntax {
  readonly quotedScalars: boolean;
}

export type Scalar = string | number | boolean;

/** Reads one value of a scalar or enum field; errors name the field, what it takes and what was given. */
export function readScalar(field: protobuf.Field, node: TreeNode, syntax: ScalarSyntax): Scalar {
  if (node.kind === "message" || node.kind === "list") {
    throw mismatch(field, node, `${expectation(field)}, got a ${node.kind}`);
  }
  if (field.resolvedType instanceof protobuf.Enum)
    return readEnum(field, field.resolvedType, node, syntax);
  if (field.type === "string") {
    if (node.kind !== "string") throw mismatch(field, node, `a string in quotes, got ${node.text}`);
    return node.text;
  }
  const bare = node.kind !== "string" || syntax.quotedScalars;
  const value = bare ? readBare(field, node) : undefined;
  if (value === undefined)
    throw mismatch(field, node, `${expectation(field)}, got ${written(node)}`);
  return value;
}

/** The value a field has when nobody wrote one. */
export function scalarDefault(field: protobuf.Field): Scalar {
  if (field.resolvedType instanceof protobuf.Enum) return enumName(field.resolvedType, 0) ?? "";
  if (field.type === "string") return "";
  return field.type === "bool" ? false : 0;
}

function readBare(field: protobuf.Field, node: ScalarNode): number | boolean | undefined {
  if (field.type === "bool") return readBool(node.text);
  if (field.type === "double" || field.type === "float") return readFloat(node.text);
  return readInteger(field, node);
}

function readBool(text: string): boolean | undefined {
  if (["true", "True", "t", "1"].includes(text)) return true;
  return ["false", "False", "f", "0"].includes(text) ? false : undefined;
}

function readFloat(text: string): number | undefined {
  const special = /^(-?)(inf|infinity|nan)f?$/i.exec(text);
  if (special) return special[2]?.toLowerCase() === "nan" ? NaN : special[1] ? -Infinity : Infinity;
  const decimal = /^(-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fF]?$/.exec(text)?.[1];
  return decimal === undefined ? undefined : Number(decimal);
}

function readInteger(field: protobuf.Field, node: ScalarNode): number | undefined {
  const value = integerOf(node.text);
  if (value === undefined) return undefined;
  const unsigned = field.type.startsWith("u");
  const bits = BigInt(field.type.endsWith("64") ? 64 : 32);
  const lowest = unsigned ? 0n : -(1n << (bits - 1n));
  const highest = unsigned ? (1n << bits) - 1n : (1n << (bits - 1n)) - 1n;
  if (value < lowest || value > highest) {
    throw mismatch(field, node, `an integer from ${lowest} to ${highest}, got ${node.text}`);
  }
  return held(value);
}

/** "Forever" is often written as the largest 64-bit number; the nearest exact one means the same. */
function held(value: bigint): number {
  const bound = Number.MAX_SAFE_INTEGER;
  return Math.max(-bound, Math.min(bound, Number(value)));
}

/** Decimal, hexadecimal, or octal with its leading zero. The bound on its length bounds the work. */
function integerOf(text: string): bigint | undefined {
  const [, sign, digits] = /^(-?)(0[xX][0-9a-fA-F]{1,32}|\d{1,32})$/.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const isOctal = /^0[0-7]+$/.test(digits);
  if (!isOctal && /^0\d/.test(digits)) return undefined;
  const size = BigInt(isOctal ? `0o${digits.slice(1)}` : digits);
  return sign === "-" ? -size : size;
}

function readEnum(
  field: protobuf.Field,
  type: protobuf.Enum,
  node: ScalarNode,
  syntax: ScalarSyntax,
): string {
  const isName = node.kind === (syntax.quotedScalars ? "string" : "word");
  const number = node.kind === "number" ? Number(node.text) : undefined;
  const name = number === undefined ? node.text : enumName(type, number);
  if ((isName || number !== undefined) && name !== undefined && Object.hasOwn(type.values, name))
    return name;
  const names = Object.keys(type.values);
  throw mismatch(field, node, `one of ${names.join(", ")}, got ${written(node)}`);
}

function enumName(type: protobuf.Enum, number: number): string | undefined {
  return type.valuesById[number];
}

function expectation(field: protobuf.Field): string {
  if (field.resolvedType instanceof protobuf.Enum) return "an enum name";
  if (field.type === "string") return "a string";
  if (field.type === "bool") return "true or false";
  return field.type === "double" || field.type === "float" ? "a number" : "an integer";
}

function written(node: ScalarNode): string {
  const text = node.text.length > 100 ? `${node.text.slice(0, 100)}…` : node.text;
  return node.kind === "string" ? `"${text}"` : text;
}

function mismatch(field: protobuf.Field, node: TreeNode, expected: string): Error {
  return configError(node.where, `field '${field.protoName}' expects ${expected}`);
}
