import { hash, randomBytes } from "node:crypto";
import { keyPrefix } from "../protocol/credentials.ts";

/** A key as its holder has it: shown once, and never kept. */
export interface ApiKey {
  /** As in `tp_0123456789ab_…`: the id, and 256 random bits. */
  readonly text: string;
  /** Which key it is; no secret. */
  readonly id: string;
}

/** Makes a key with a new secret. @param id of a key that gets another secret; a new one by default */
export function newApiKey(id: string = randomBytes(6).toString("hex")): ApiKey {
  return { id, text: `${keyPrefix}${id}_${randomBytes(32).toString("base64url")}` };
}

/**
 * What is kept of a key. One round of SHA-256 without salt: 256 random bits cannot be guessed, however fast guesses are,
 * and no two keys are alike. The slow hashes of passwords would only make each call slow.
 */
export function keyDigest(text: string): Buffer {
  return hash("sha256", text, "buffer");
}
