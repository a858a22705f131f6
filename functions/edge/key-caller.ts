import { keyIdIn } from "../../protocol/credentials.ts";
import { edgeKeyName } from "../../protocol/edge-key.ts";
import { isJsonObject } from "../../protocol/json-access.ts";
import type { Caller } from "./caller.ts";
import { sha256 } from "./sha256.ts";
import { ShortMemory } from "./short-memory.ts";

/** By digest, those who were let in lately, and until when nobody is asked about them again. */
const known = new ShortMemory<{ readonly caller: Caller; readonly until: number }>(1000);
const trustedMilliseconds = 5000;
const knownSeconds = 600;

/**
 * Who holds an API key, by the record that `tidepool keys` has put into the KV namespace; undefined for a key that is not
 * valid. A namespace tells of a change up to a minute later: gateways look the key up again.
 *
 * @param tooMany counts a look-up of a key that may be made up, and gives the answer in its place
 */
export async function keyCaller(
  keys: KVNamespace,
  text: string,
  tooMany: () => Promise<Response | undefined>,
): Promise<Caller | Response | undefined> {
  const id = keyIdIn(text);
  if (id === undefined) return undefined;
  const digest = await sha256([text]);
  const seen = known.recall(digest);
  if (seen && Date.now() < seen.until) return seen.caller;
  // Who was let in lately must not wait because others at its address guess.
  const refused = seen ? undefined : await tooMany();
  if (refused) return refused;
  const caller = holder(await keys.get(edgeKeyName(id), "json"), id, digest);
  const until = Date.now() + trustedMilliseconds;
  if (caller) known.remember(digest, { caller, until }, knownSeconds);
  else known.forget(digest);
  return caller;
}

function holder(record: unknown, id: string, digest: string): Caller | undefined {
  if (!isJsonObject(record)) return undefined;
  const { tenant, scopes, models, expiresAt = Infinity, sha256: current, previous } = record;
  const now = Date.now();
  if (typeof expiresAt !== "number" || expiresAt <= now) return undefined;
  if (!isEqual(digest, current) && !isPrevious(digest, previous, now)) return undefined;
  if (typeof tenant !== "string" || !Array.isArray(scopes) || !Array.isArray(models))
    return undefined;
  return { name: `key:${id}`, tenant, scopes, models, word: { kind: "key", id, sha256: digest } };
}

/** The secret before the last rotation is good for a while. */
function isPrevious(given: string, previous: unknown, now: number): boolean {
  if (!isJsonObject(previous) || typeof previous["expiresAt"] !== "number") return false;
  return previous["expiresAt"] > now && isEqual(given, previous["sha256"]);
}

/** In the same time, whatever differs. */
function isEqual(given: string, expected: unknown): boolean {
  if (typeof expected !== "string" || expected.length !== given.length) return false;
  const encoder = new TextEncoder();
  return crypto.subtle.timingSafeEqual(encoder.encode(given), encoder.encode(expected));
}
