import type { ModelConfig } from "../protocol/model-config.ts";
import type { MessageNode } from "./config-text/message-tree.ts";
import { messages } from "./proto-files.ts";
import { type MessageSyntax, readMessage } from "./config-text/read-message.ts";

/** Reads a model config from the tree of either syntax. */
export function readConfig(tree: MessageNode, syntax: MessageSyntax): ModelConfig {
  const config: unknown = readMessage(messages().type("ModelConfig"), tree, syntax);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the message type has every field of the interface, and a test compares them
  return config as ModelConfig;
}

/** The largest config that is read, as text format or JSON, in characters. */
export const maxConfigLength = 1 << 20;
