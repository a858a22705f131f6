import { edgeKeyName, edgeKeyPrefix } from "../protocol/edge-key.ts";
import { InferenceError } from "../protocol/error.ts";
import type { KeyRecord } from "./key-record.ts";
import type { KeyStore } from "./key-store.ts";
import type { KvNamespace } from "./kv-namespace.ts";

/** A store whose changes the edge Worker is told of. */
export interface PublishedKeys {
  readonly store: KeyStore;
  /** Why the edge was not told of a change that was made, if that happened. */
  readonly failure: () => InferenceError | undefined;
}

/** Has each change of a store's keys written to the edge, too, once it is made; that must not undo it, or hide a new key. */
export function publishedKeys(store: KeyStore, edge: KvNamespace): PublishedKeys {
  let failure: InferenceError | undefined;
  return {
    failure: () => failure,
    store: {
      ...store,
      async replace(before, after) {
        const done = await store.replace(before, after);
        if (done) {
          await tell(edge, before, after).catch((cause: unknown) => {
            failure = InferenceError.from(cause);
          });
        }
        return done;
      },
    },
  };
}

/** Makes the edge know exactly the keys of a store. @returns how many it knows now, and how many it had to forget */
export async function publishKeys(
  store: KeyStore,
  edge: KvNamespace,
): Promise<{ readonly written: number; readonly removed: number }> {
  const texts = new Map((await store.all()).map(entry));
  await edge.put(texts);
  const gone = (await edge.list(edgeKeyPrefix)).filter((name) => !texts.has(name));
  await edge.remove(gone);
  return { written: texts.size, removed: gone.length };
}

async function tell(
  edge: KvNamespace,
  before: KeyRecord | undefined,
  after: KeyRecord | undefined,
): Promise<void> {
  if (after) await edge.put(new Map([entry(after)]));
  else if (before) await edge.remove([edgeKeyName(before.id)]);
}

function entry(record: KeyRecord): [name: string, text: string] {
  return [edgeKeyName(record.id), JSON.stringify(record)];
}
