import { keyIdIn } from "../../protocol/credentials.ts";
import { edgeKeyName } from "../../protocol/edge-key.ts";
import { isJsonObject } from "../../protocol/json-access.ts";
import type { Caller } from "./caller.ts";
import { sha256 } from "./sha256.ts";
import { ShortMemory } from "./short-memory.ts";

/** By digest, those who were let in a moment ago: one isolate gets the calls of many, and each look-up costs. */
const known = new ShortMemory<Caller>(1000);
const knownSeconds = 5;

/**
 * Who holds an API key, by the record that `tidepool keys` has put into the KV namespace; undefined for a key that is not
 * valid. A namespace tells of a change up to a minute later: gateways look the key up again.
 */
export async function keyCaller(keys: KVNamespace, text: string): Promise<Caller | undefined> {
  const id = keyIdIn(text);
  if (id === undefined) return undefined;
  const digest = await sha256([text]);
  const remembered = known.recall(digest);
  if (remembered) return remembered;
  const found = holder(await keys.get(edgeKeyName(id), "json"), id, digest);
  if (found) known.remember(digest, found, knownSeconds);
  return found;
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
