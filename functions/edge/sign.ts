import { type EdgeWord, edgeWordText } from "../../protocol/edge-word.ts";
import { hex } from "./sha256.ts";

const encoder = new TextEncoder();
let known: { readonly secret: string; readonly key: Promise<CryptoKey> } | undefined;

/** The word for a call as its header has it: signed, so that gateways can trust it. */
export async function signedWord(word: EdgeWord, secret: string): Promise<string> {
  if (known?.secret !== secret) known = { secret, key: hmacKey(secret) };
  const text = edgeWordText(word);
  const signature = await crypto.subtle.sign("HMAC", await known.key, encoder.encode(text));
  return `${hex(signature)} ${text}`;
}

function hmacKey(secret: string): Promise<CryptoKey> {
  const how = { name: "HMAC", hash: "SHA-256" };
  return crypto.subtle.importKey("raw", encoder.encode(secret), how, false, ["sign"]);
}
