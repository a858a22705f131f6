import protobuf from "protobufjs";

/** The protobuf messages of the protocol, found by name, as the `.proto` files describe them. */
export interface Messages {
  readonly root: protobuf.Root;
  /** A message of package `inference`, or of another one by its full name; throws for a name that no file declares. */
  type(name: string): protobuf.Type;
}

/** Builds the messages from the text of the `.proto` files, without a look at the disk. */
export function parseMessages(protoTexts: readonly string[]): Messages {
  const root = new protobuf.Root();
  // Fields get camelCase names; `protoName` keeps the snake_case of the file.
  for (const text of protoTexts) protobuf.parse(text, root);
  root.resolveAll();
  return { root, type: (name) => root.lookupType(name.includes(".") ? name : `inference.${name}`) };
}
