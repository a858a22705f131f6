import { type InferenceError, invalidArgument } from "../../protocol/error.ts";

/** A message as somebody wrote it, before its type is known: what text format and JSON have in common. */
export type TreeNode = ScalarNode | ListNode | MessageNode;

export interface ScalarNode {
  /** A quoted string, a number, or a bare word such as `true` or `TYPE_FP32`. */
  readonly kind: "string" | "number" | "word";
  /** Without quotes, escapes resolved. */
  readonly text: string;
  /** Where it stands, for error texts: `config.pbtxt:12`. So it is in the other nodes. */
  readonly where: string;
}

export interface ListNode {
  readonly kind: "list";
  readonly items: readonly TreeNode[];
  readonly where: string;
}

export interface MessageNode {
  readonly kind: "message";
  /** In the order written; a name may come more than once. */
  readonly fields: readonly FieldNode[];
  readonly where: string;
}

export interface FieldNode {
  readonly name: string;
  readonly value: TreeNode;
  readonly where: string;
}

/** How deep messages may nest; the deepest config needs half of it. */
export const maxNesting = 16;

/** A mistake in a config, with the place where it stands. */
export function configError(where: string, message: string, cause?: unknown): InferenceError {
  return invalidArgument(`${where}: ${message}`, { cause });
}
