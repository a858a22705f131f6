import { publishedKeys, publishKeys } from "../auth/edge-keys.ts";
import type { KeyStore } from "../auth/key-store.ts";
import { type KvNamespace, kvNamespace } from "../auth/kv-namespace.ts";
import { InferenceError } from "../protocol/error.ts";
import { guardedUrl } from "./access-settings.ts";
import type { AuditedKeys } from "./keys-audit.ts";
import type { Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** Lets a command change keys, and tells the edge Worker of it where the settings want that. */
export async function withEdge(
  store: KeyStore,
  settings: Settings,
  { auditedEdge }: Pick<AuditedKeys, "auditedEdge">,
  change: (store: KeyStore) => Promise<void>,
): Promise<void> {
  const edge = edgeKeys(settings);
  if (!edge) return change(store);
  const published = publishedKeys(store, auditedEdge(edge));
  await change(published.store);
  const cause = published.failure();
  if (cause === undefined) return undefined;
  const { code, message } = cause;
  const text = `the key is changed, but the edge does not know: ${message}`;
  throw new InferenceError(code, `${text}; tidepool keys publish tells it`, { cause });
}

/** `tidepool keys publish`: makes the edge Worker know exactly the keys of a store. */
export async function publish(
  store: KeyStore,
  settings: Settings,
  _id: string,
  { auditedEdge }: AuditedKeys,
): Promise<void> {
  const edge = edgeKeys(settings);
  if (!edge) {
    throw new UsageError("keys publish: expected --kv-account-id and --kv-namespace-id");
  }
  const { written, removed } = await publishKeys(store, auditedEdge(edge));
  process.stderr.write(
    `the edge is told of ${written} keys, and has forgotten ${removed} others\n`,
  );
}

/** Where the settings want keys to be told of at the edge; undefined where nowhere. The token is no flag: others see those. */
function edgeKeys(settings: Settings): KvNamespace | undefined {
  const { kvAccountId: accountId, kvNamespaceId: namespaceId, kvEndpoint } = settings;
  if (accountId === undefined && namespaceId === undefined) return undefined;
  if (accountId === undefined || namespaceId === undefined) {
    throw new UsageError("--kv-account-id, --kv-namespace-id: given one of them, expected both");
  }
  const token = process.env["CLOUDFLARE_API_TOKEN"];
  if (token === undefined || token === "") {
    throw new UsageError("CLOUDFLARE_API_TOKEN: given nothing, expected a token for Workers KV");
  }
  const endpoint = guardedUrl("kv-endpoint", kvEndpoint).href.replace(/\/$/u, "");
  return kvNamespace({ endpoint, accountId, namespaceId, token });
}
