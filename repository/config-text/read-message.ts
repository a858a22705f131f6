import protobuf from "protobufjs";
import { configError, type FieldNode, type MessageNode, type TreeNode } from "./message-tree.ts";
import { nearestName } from "../nearest-name.ts";
import { readScalar, type ScalarSyntax, scalarDefault } from "./read-scalar.ts";

/** What sets text format and JSON apart once they are trees. */
export interface MessageSyntax extends ScalarSyntax {
  /** A field may be spelled in camelCase, too. */
  readonly camelCase: boolean;
  /** A map is one message whose fields are its entries; otherwise each entry is a message with `key` and `value`. */
  readonly mapIsMessage: boolean;
  /** A singular field that comes again replaces the first one; otherwise it is refused. */
  readonly lastWins: boolean;
}

type Message = Readonly<Record<string, unknown>>;
type MapField = protobuf.Field & Pick<protobuf.MapField, "keyType">;

/**
 * Gives a tree its type: a plain object in camelCase with every default filled in and absent messages left out.
 * Refuses fields the type does not have, values of another type, and two members of one oneof.
 */
export function readMessage(
  type: protobuf.Type,
  node: MessageNode,
  syntax: MessageSyntax,
): Message {
  const nodes = new Map<protobuf.Field, TreeNode[]>();
  for (const written of node.fields) {
    const field = fieldOf(type, written, syntax);
    const earlier = nodes.get(field);
    if (earlier && !isMany(field) && !syntax.lastWins) {
      throw configError(written.where, `field '${field.protoName}' is given more than once`);
    }
    refuseSibling(field, nodes, written);
    if (earlier && isMany(field)) earlier.push(written.value);
    else nodes.set(field, [written.value]);
  }
  const read = type.fieldsArray.map((field) => [
    field.name,
    readField(field, nodes.get(field), syntax),
  ]);
  return Object.fromEntries(read.filter(([, value]) => value !== undefined));
}

function isMapField(field: protobuf.Field): field is MapField {
  return field.map;
}

function isMany(field: protobuf.Field): boolean {
  return field.repeated || field.map;
}

function fieldOf(type: protobuf.Type, written: FieldNode, syntax: MessageSyntax): protobuf.Field {
  const field = type.fieldsArray.find(
    ({ name, protoName }) =>
      protoName === written.name || (syntax.camelCase && name === written.name),
  );
  if (field) return field;
  const meant = nearestName(
    written.name,
    type.fieldsArray.map(({ protoName }) => protoName),
  );
  const hint = meant === undefined ? "" : `; did you mean '${meant}'?`;
  throw configError(
    written.where,
    `${spoken(type)} has no field '${shorten(written.name)}'${hint}`,
  );
}

function refuseSibling(
  field: protobuf.Field,
  nodes: ReadonlyMap<protobuf.Field, unknown>,
  written: FieldNode,
): void {
  const sibling = field.partOf?.fieldsArray.find((other) => other !== field && nodes.has(other));
  if (!sibling) return;
  throw configError(
    written.where,
    `field '${field.protoName}' is given together with '${sibling.protoName}'; only one of them may be`,
  );
}

function readField(
  field: protobuf.Field,
  nodes: readonly TreeNode[] | undefined,
  syntax: MessageSyntax,
): unknown {
  field.resolve();
  if (isMapField(field)) return readMap(field, flatten(nodes ?? []), syntax);
  if (field.repeated) return flatten(nodes ?? []).map((node) => readValue(field, node, syntax));
  const node = nodes?.[0];
  if (node) return readValue(field, node, syntax);
  return field.resolvedType instanceof protobuf.Type || field.partOf
    ? undefined
    : scalarDefault(field);
}

function flatten(nodes: readonly TreeNode[]): readonly TreeNode[] {
  return nodes.flatMap((node) => (node.kind === "list" ? node.items : [node]));
}

function readValue(field: protobuf.Field, node: TreeNode, syntax: MessageSyntax): unknown {
  if (!(field.resolvedType instanceof protobuf.Type)) return readScalar(field, node, syntax);
  if (node.kind === "message") return readMessage(field.resolvedType, node, syntax);
  const given = node.kind === "list" ? "a list" : node.text;
  throw configError(
    node.where,
    `field '${field.protoName}' expects a message in braces, got ${shorten(given)}`,
  );
}

function readMap(
  field: MapField,
  nodes: readonly TreeNode[],
  syntax: MessageSyntax,
): Readonly<Record<string, unknown>> {
  const entries = nodes.flatMap((node) => {
    if (node.kind !== "message") {
      throw configError(node.where, `field '${field.protoName}' expects map entries in braces`);
    }
    return syntax.mapIsMessage
      ? node.fields.map((entry) => jsonEntry(field, entry, syntax))
      : [textEntry(field, node, syntax)];
  });
  // A key that comes again replaces the first one, as it does in the reference.
  return Object.fromEntries(entries);
}

function jsonEntry(
  field: MapField,
  { name, value, where }: FieldNode,
  syntax: MessageSyntax,
): readonly [string, unknown] {
  const key = mapKey(field, { kind: "string", text: name, where }, syntax);
  return [key, readValue(field, value, syntax)];
}

function textEntry(
  field: MapField,
  node: MessageNode,
  syntax: MessageSyntax,
): readonly [string, unknown] {
  const parts = new Map<string, TreeNode>();
  for (const { name, value, where } of node.fields) {
    if ((name !== "key" && name !== "value") || parts.has(name)) {
      const shape = `an entry of '${field.protoName}' has one 'key' and one 'value'`;
      throw configError(where, `${shape}, got '${shorten(name)}'`);
    }
    parts.set(name, value);
  }
  const [key, value] = [parts.get("key"), parts.get("value")];
  if (!key) throw configError(node.where, `an entry of '${field.protoName}' has no 'key'`);
  return [
    mapKey(field, key, syntax),
    value ? readValue(field, value, syntax) : emptyValue(field, node, syntax),
  ];
}

function emptyValue(field: MapField, node: MessageNode, syntax: MessageSyntax): unknown {
  if (!(field.resolvedType instanceof protobuf.Type)) return scalarDefault(field);
  return readMessage(field.resolvedType, { ...node, fields: [] }, syntax);
}

function mapKey(field: MapField, node: TreeNode, syntax: ScalarSyntax): string {
  const keyField = new protobuf.Field("key", 1, field.keyType).resolve();
  return String(readScalar(keyField, node, syntax));
}

/** `ModelConfig` as a sentence says it: "model config". */
function spoken(type: protobuf.Type): string {
  return type.name.replace(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
}

function shorten(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}
