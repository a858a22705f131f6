import { createHash } from "node:crypto";
import type { Hash } from "../protocol/cache-key.ts";

/** Node's SHA-256 for the keys of cached answers. */
export const sha256: Hash<string> = (pieces) => {
  const hash = createHash("sha256");
  for (const piece of pieces) hash.update(piece);
  return hash.digest("base64url");
};
