import { timingSafeEqual } from "node:crypto";
import type { Caller } from "./caller.ts";
import type { KeyRing } from "./key-ring.ts";

/**
 * Whoever holds one of a key's secrets, by the digest of its text. All that a caller can measure is whether the id is
 * known, which is no secret.
 *
 * @param now milliseconds since the epoch
 */
export function keyHolder(
  keys: Pick<KeyRing, "find">,
  id: string,
  given: Buffer,
  now: number,
): Caller | undefined {
  const key = keys.find(id);
  if (!key || key.expiresAt <= now) return undefined;
  const held = key.secrets.some(
    ({ digest, expiresAt }) =>
      expiresAt > now && digest.length === given.length && timingSafeEqual(digest, given),
  );
  return held ? key.caller : undefined;
}
