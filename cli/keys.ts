import { fileKeyStore } from "../auth/file-key-store.ts";
import { createKey, type MadeKey, revokeKey, rotateKey } from "../auth/key-changes.ts";
import type { KeyRecord } from "../auth/key-record.ts";
import type { KeyStore } from "../auth/key-store.ts";
import { bounds } from "../auth/limits/limits.ts";
import { redisKeyStore } from "../auth/redis-key-store.ts";
import { connect } from "../redis/connection.ts";
import { keysInRedis } from "./access.ts";
import { leadingWords } from "./arguments.ts";
import { redisUrlOf } from "./connect-redis.ts";
import { publish, withEdge } from "./edge-keys.ts";
import { changeKeyLimits, keyLimits, limitsText } from "./key-limits.ts";
import { type AuditedKeys, auditKeys } from "./keys-audit.ts";
import type { ReadSettings, Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** One thing to do with keys. @param id of the key that it is about */
type Action = (
  store: KeyStore,
  settings: Settings,
  id: string,
  audit: AuditedKeys,
) => Promise<void>;
/** The same where all but the store is known. */
type StoreAction = (store: KeyStore) => Promise<void>;

const actions: ReadonlyMap<string, Action> = new Map([
  ["create", create],
  ["limit", changeKeyLimits],
  ["list", list],
  ["rotate", rotate],
  ["revoke", revoke],
  ["publish", publish],
]);

/**
 * `tidepool keys create|list|limit <id>|rotate <id>|revoke <id>|publish`: makes and ends the API keys that servers ask for, and tells
 * the edge Worker of them. A new key is the only thing that goes to standard output, so that it can be kept without having been seen.
 *
 * @returns the exit code
 */
export async function keys({ settings }: ReadSettings, args: readonly string[]): Promise<number> {
  const [verb = "", id = "", ...more] = leadingWords(args);
  const action = actions.get(verb);
  if (!action || more.length > 0) {
    const known = [...actions.keys()].join(", ");
    throw new UsageError(
      `keys: given '${verb}', expected one of ${known}; limit, rotate and revoke an id`,
    );
  }
  if (["limit", "rotate", "revoke"].includes(verb) !== (id !== "")) {
    throw new UsageError(
      id === ""
        ? `keys ${verb}: given no id, expected that of a key; tidepool keys list shows them`
        : `keys ${verb}: given '${id}', expected no id`,
    );
  }
  const { apiKeys } = settings;
  if (apiKeys === undefined) {
    throw new UsageError("--api-keys: given nothing, expected a file, or redis");
  }
  const audit = auditKeys(settings);
  const audited: StoreAction = (store) =>
    withEdge(audit.audited(store), settings, audit, (told) => action(told, settings, id, audit));
  try {
    await (apiKeys === keysInRedis ? inRedis : inFile)(audited, settings);
  } finally {
    await audit.close();
  }
  return 0;
}

async function inRedis(action: StoreAction, settings: Settings): Promise<void> {
  const redis = await connect(redisUrlOf(settings), "commands");
  try {
    await action(redisKeyStore(redis));
  } finally {
    redis.disconnect();
  }
}

async function inFile(action: StoreAction, settings: Settings): Promise<void> {
  const { apiKeys = "" } = settings;
  try {
    await action(fileKeyStore(apiKeys));
  } catch (cause) {
    // What the system says of the file.
    if (!(cause instanceof Error && "syscall" in cause)) throw cause;
    throw new UsageError(`--api-keys: given ${apiKeys}, ${cause.message}`, { cause });
  }
}

const dayMilliseconds = 86_400_000;

async function create(store: KeyStore, settings: Settings): Promise<void> {
  const { keyName: name, keyTenant: tenant, keyScope, keyModel, keyExpiresDays: days } = settings;
  if (name === undefined) throw new UsageError("--key-name: given nothing, expected a name");
  const now = Date.now();
  const limits = keyLimits(settings);
  const purpose = {
    name,
    tenant,
    scopes: keyScope.length > 0 ? keyScope : (["infer", "read"] as const),
    models: keyModel.length > 0 ? keyModel : ["*"],
    ...(bounds(limits) && { limits }),
    expiresAt: days === undefined ? undefined : Math.round(now + days * dayMilliseconds),
  };
  show(await createKey(store, purpose, now), "it");
}

async function rotate(store: KeyStore, settings: Settings, id: string): Promise<void> {
  const until = Date.now() + settings.keyGraceSecs * 1000;
  show(await rotateKey(store, id, until), `the one before is valid until ${time(until)}; this one`);
}

async function revoke(store: KeyStore, _settings: Settings, id: string): Promise<void> {
  const { name } = await revokeKey(store, id);
  process.stderr.write(`key ${id} (${name}) is revoked: servers refuse it within two seconds\n`);
}

async function list(store: KeyStore): Promise<void> {
  const records = await store.all();
  const rows = records.toSorted((one, other) => one.createdAt - other.createdAt).map(cells);
  const table = [
    ["ID", "NAME", "TENANT", "SCOPES", "MODELS", "CREATED", "EXPIRES", "LIMITS"],
    ...rows,
  ];
  const widths = table[0]?.map((_, at) => Math.max(...table.map((row) => row[at]?.length ?? 0)));
  for (const row of table) {
    const line = row.map((cell, at) => cell.padEnd(widths?.[at] ?? 0)).join("  ");
    process.stdout.write(`${line.trimEnd()}\n`);
  }
}

function cells(record: KeyRecord): readonly string[] {
  const { id, name, tenant, scopes, models, createdAt, expiresAt, limits } = record;
  const end = expiresAt === undefined ? "never" : time(expiresAt);
  return [
    id,
    name,
    tenant,
    scopes.join(","),
    models.join(","),
    time(createdAt),
    end,
    limitsText(limits),
  ];
}

function show({ key, record }: MadeKey, which: string): void {
  const { id, name, tenant, scopes, models } = record;
  process.stdout.write(`${key.text}\n`);
  process.stderr.write(
    `key ${id} (${name}) of tenant ${tenant} for ${scopes.join(", ")} of ${models.join(", ")}: ${which} is shown only now\n`,
  );
}

function time(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;
}
