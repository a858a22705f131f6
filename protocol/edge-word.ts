import { isJsonObject } from "./json-access.ts";

/**
 * What the edge Worker says of a call that it hands on to a gateway. It travels in a header, behind its signature and as
 * the text that was signed, so that nobody has to spell it again to check it.
 */
export interface EdgeWord {
  readonly method: string;
  /** Path and query, as the gateway sees them. */
  readonly target: string;
  /** The values of `signedHeaders`, in their order; null for one that is not there. */
  readonly headers: readonly (string | null)[];
  /** SHA-256 in hexadecimal; null for a call without a body, and for a body that is sent on while it arrives. */
  readonly bodySha256: string | null;
  /** When it was said: milliseconds since the epoch. */
  readonly at: number;
  /** No two words have the same, so that a gateway takes each once. */
  readonly nonce: string;
  readonly caller: EdgeCaller;
}

/** Who calls, as the edge found it: a key that the gateway knows as well, or what a good token claims. */
export type EdgeCaller =
  | { readonly kind: "key"; readonly id: string; readonly sha256: string }
  | { readonly kind: "token"; readonly claims: EdgeClaims };

/** Claims under their usual names, however the issuer calls them; the values are those of the token. */
export interface EdgeClaims {
  readonly sub: unknown;
  readonly tenant?: unknown;
  readonly scope?: unknown;
  readonly models?: unknown;
}

/** The header: HMAC-SHA256 of the text in hexadecimal, a blank, and the text. */
export const edgeWordHeader = "tidepool-edge";

/** Headers that say how the body is read, or what becomes of the call. */
export const signedHeaders = [
  "content-digest",
  "content-encoding",
  "idempotency-key",
  "inference-header-content-length",
  "prefer",
  "webhook-url",
] as const;

/** The text that is signed: JSON of visible ASCII, as headers want it. */
export function edgeWordText(word: EdgeWord): string {
  return JSON.stringify(word).replaceAll(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** The word in a text whose signature is good; undefined where an edge Worker of another release wrote it otherwise. */
export function readEdgeWord(text: string): EdgeWord | undefined {
  const word: unknown = JSON.parse(text);
  return isEdgeWord(word) ? word : undefined;
}

function isEdgeWord(word: unknown): word is EdgeWord {
  if (!isJsonObject(word)) return false;
  const { method, target, headers, bodySha256, at, nonce, caller } = word;
  const texts = [method, target, nonce].every((one) => typeof one === "string");
  const body = bodySha256 === null || typeof bodySha256 === "string";
  return texts && body && typeof at === "number" && Array.isArray(headers) && isCaller(caller);
}

function isCaller(caller: unknown): caller is EdgeCaller {
  if (!isJsonObject(caller)) return false;
  const { kind, id, sha256, claims } = caller;
  if (kind === "token") return isJsonObject(claims);
  return kind === "key" && typeof id === "string" && typeof sha256 === "string";
}
