import type { MemoryTierOptions } from "../cache/memory-tier.ts";
import { InferenceError } from "../protocol/error.ts";
import { parseRedisUrl } from "../redis/url.ts";
import { UsageError } from "./usage-error.ts";

/** What `--cache-config` settles: which tiers there are, and how large. */
export interface CacheConfig {
  readonly memory?: MemoryTierOptions;
  readonly redis?: { readonly url: string; readonly ttlMilliseconds: number };
}

type Values = Readonly<Partial<Record<string, string>>>;

const setting = /^(?<tier>local|redis),(?<name>[a-z_]+)=(?<value>.*)$/su;
const names: Readonly<Record<string, readonly string[]>> = {
  local: ["size", "ttl"],
  redis: ["url", "host", "port", "user", "password", "db", "tls_enabled", "ttl"],
};
const smallestBytes = 1024;
const defaultRedisTtlSeconds = 86_400;

/**
 * Reads settings written `local,<name>=<value>` or `redis,<name>=<value>`; of two for one name the last counts. Errors
 * name settings without their values, some of which are secrets.
 *
 * @param environment may hold what gets into the Redis, in variables that Triton knows, too
 */
export function parseCacheConfig(
  texts: readonly string[],
  environment: NodeJS.ProcessEnv,
): CacheConfig {
  const tiers: Record<string, Record<string, string>> = {};
  for (const text of texts) {
    const { tier = "", name = "", value = "" } = setting.exec(text)?.groups ?? {};
    const known = names[tier];
    if (!known)
      throw wrong(text.split("=")[0], "local,<setting>=<value> or redis,<setting>=<value>");
    if (!known.includes(name)) throw wrong(`${tier},${name}`, `one of ${known.join(", ")}`);
    tiers[tier] = { ...tiers[tier], [name]: value };
  }
  const { local, redis } = tiers;
  return {
    ...(local && { memory: readLocal(local) }),
    ...(redis && readRedis(redis, environment)),
  };
}

function readLocal(values: Values): MemoryTierOptions {
  const maxBytes = integer("local,size", values["size"] ?? "", smallestBytes);
  if (values["ttl"] === undefined) return { maxBytes };
  return { maxBytes, ttlMilliseconds: integer("local,ttl", values["ttl"], 1) * 1000 };
}

function readRedis(values: Values, environment: NodeJS.ProcessEnv): Pick<CacheConfig, "redis"> {
  const url = values["url"] ?? urlOf(values, environment);
  try {
    parseRedisUrl(url);
  } catch (cause) {
    throw new UsageError(`--cache-config: redis,url: ${InferenceError.from(cause).message}`, {
      cause,
    });
  }
  const ttlSeconds = integer("redis,ttl", values["ttl"] ?? String(defaultRedisTtlSeconds), 1);
  return { redis: { url, ttlMilliseconds: ttlSeconds * 1000 } };
}

/** The URL that the settings of Triton's own Redis cache stand for. */
function urlOf(values: Values, environment: NodeJS.ProcessEnv): string {
  const { host, port = "6379", db = "0", tls_enabled: tls } = values;
  if (host === undefined) throw wrong("redis", "redis,host or redis,url, too");
  const user = values["user"] ?? environment["TRITONCACHE_REDIS_USERNAME"] ?? "";
  const password = values["password"] ?? environment["TRITONCACHE_REDIS_PASSWORD"] ?? "";
  const credentials =
    user || password ? `${encodeURIComponent(user)}:${encodeURIComponent(password)}@` : "";
  return `redis${tls === "true" ? "s" : ""}://${credentials}${host}:${port}/${db}`;
}

function integer(name: string, text: string, least: number): number {
  const value = Number(text);
  if (/^\d{1,15}$/u.test(text) && value >= least) return value;
  throw wrong(name, `an integer, ${least} or more`);
}

function wrong(given: string | undefined, expected: string): UsageError {
  return new UsageError(`--cache-config: given '${given ?? ""}', expected ${expected}`);
}
