import type { InferReply } from "../../protocol/infer-reply.ts";

/** The body of an answer: text, with the bytes of tensors behind it. */
export interface ReplyBody extends InferReply {
  /** Bytes of the text. */
  readonly headLength: number;
  /** Bytes of all. */
  readonly length: number;
}

/** Up to this size head and body of an answer go out as one string, which costs less than pieces without a copy. */
const smallBytes = 16_384;

/** Measures a reply. */
export function replyBody({ head, tail }: InferReply): ReplyBody {
  const headLength = Buffer.byteLength(head);
  let length = headLength;
  for (const bytes of tail) length += bytes.length;
  return { head, tail, headLength, length };
}

/** What the headers say of a reply besides its length; names and values by turns. */
export function replyHeaders({ tail, headLength }: ReplyBody): readonly string[] {
  if (tail.length === 0) return ["Content-Type", "application/json"];
  return [
    "Content-Type",
    "application/octet-stream",
    "Inference-Header-Content-Length",
    String(headLength),
  ];
}

/** A small body as a string whose characters are bytes (latin1), a large one piece by piece. */
export function replyPieces(body: ReplyBody): string | readonly (string | Uint8Array)[] {
  const { head, tail, headLength, length } = body;
  if (length > smallBytes) return [head, ...tail];
  const text = head.length === headLength ? head : Buffer.from(head).toString("latin1");
  let whole = text;
  for (const { buffer, byteOffset, byteLength } of tail) {
    whole += Buffer.from(buffer, byteOffset, byteLength).toString("latin1");
  }
  return whole;
}
