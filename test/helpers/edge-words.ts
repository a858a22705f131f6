import { createHmac, hash, randomUUID } from "node:crypto";
import { type EdgeWord, edgeWordText, signedHeaders } from "../../protocol/edge-word.ts";
import { edgeSecret } from "./edge-worker.ts";
import type { Headers } from "./http-client.ts";

/** A call that an edge Worker would hand on. */
export interface SignedCall {
  readonly method: string;
  readonly target: string;
  readonly body?: string;
  readonly headers?: Headers;
  /** Claims of the token that the caller has shown. */
  readonly claims?: object;
}

/** The headers of a call, with the word that an edge Worker says for it. */
export function signedCall({
  method,
  target,
  body,
  headers = {},
  claims = {},
}: SignedCall): Headers {
  const word: EdgeWord = {
    method,
    target,
    headers: signedHeaders.map((name) => headers[name] ?? null),
    bodySha256: body === undefined ? null : hash("sha256", body, "hex"),
    at: Date.now(),
    nonce: randomUUID(),
    caller: { kind: "token", claims: { sub: "a", scope: "infer read", ...claims } },
  };
  const text = edgeWordText(word);
  const signature = createHmac("sha256", edgeSecret).update(text).digest("hex");
  return { ...headers, "tidepool-edge": `${signature} ${text}` };
}
