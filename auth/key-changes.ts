import { InferenceError, invalidArgument, StatusCode } from "../protocol/error.ts";
import { type ApiKey, keyDigest, newApiKey } from "./api-key.ts";
import { type KeyRecord, readKeyRecord } from "./key-record.ts";
import type { KeyStore } from "./key-store.ts";
import { bounds, type Limits } from "./limits/limits.ts";

/** What a new key is for. */
export type KeyPurpose = Pick<KeyRecord, "name" | "tenant" | "scopes" | "models" | "limits"> & {
  /** Milliseconds since the epoch. */
  readonly expiresAt: number | undefined;
};

/** A key that was made now: its text is in nobody's hands but the caller's. */
export interface MadeKey {
  readonly key: ApiKey;
  readonly record: KeyRecord;
}

/** Makes a key and keeps its digest. @param now milliseconds since the epoch */
export async function createKey(
  store: KeyStore,
  { expiresAt, ...purpose }: KeyPurpose,
  now: number,
): Promise<MadeKey> {
  const key = newApiKey();
  const record = readKeyRecord({
    ...purpose,
    id: key.id,
    createdAt: now,
    ...(expiresAt !== undefined && { expiresAt }),
    sha256: keyDigest(key.text).toString("hex"),
  });
  if (await store.replace(undefined, record)) return { key, record };
  throw changedMeanwhile(key.id);
}

/**
 * Gives a key another secret; the one before is valid until the given time, and none before that.
 *
 * @param previousUntil milliseconds since the epoch
 */
export async function rotateKey(
  store: KeyStore,
  id: string,
  previousUntil: number,
): Promise<MadeKey> {
  const before = await existing(store, id);
  const key = newApiKey(id);
  const record = readKeyRecord({
    ...before,
    sha256: keyDigest(key.text).toString("hex"),
    previous: { sha256: before.sha256, expiresAt: previousUntil },
  });
  if (await store.replace(before, record)) return { key, record };
  throw changedMeanwhile(id);
}

/** Gives a key other limits, in the place of all that it had. */
export async function limitKey(store: KeyStore, id: string, limits: Limits): Promise<KeyRecord> {
  const before = await existing(store, id);
  const { limits: _, ...others } = before;
  const record = readKeyRecord({ ...others, ...(bounds(limits) && { limits }) });
  if (await store.replace(before, record)) return record;
  throw changedMeanwhile(id);
}

/** Ends a key, all its secrets with it. */
export async function revokeKey(store: KeyStore, id: string): Promise<KeyRecord> {
  const before = await existing(store, id);
  if (await store.replace(before, undefined)) return before;
  throw changedMeanwhile(id);
}

async function existing(store: KeyStore, id: string): Promise<KeyRecord> {
  const record = (await store.all()).find((one) => one.id === id);
  if (record) return record;
  throw invalidArgument(`key '${id}': given an id that no key has; tidepool keys list shows them`);
}

function changedMeanwhile(id: string): InferenceError {
  return new InferenceError(StatusCode.Unavailable, `key '${id}' was changed by somebody else now`);
}
