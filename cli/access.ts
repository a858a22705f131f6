import { readFile } from "node:fs/promises";
import { authenticator } from "../auth/authenticator.ts";
import { EdgeTrust, wordLifeMilliseconds } from "../auth/edge-trust.ts";
import { fileKeyStore } from "../auth/file-key-store.ts";
import { KeyRing } from "../auth/key-ring.ts";
import type { KeyStore } from "../auth/key-store.ts";
import { redisKeyStore } from "../auth/redis-key-store.ts";
import type { TokenVerifier } from "../auth/token-verifier.ts";
import { wordsInMemory, wordsInRedis } from "../auth/used-words.ts";
import type { Access } from "../gateway/access.ts";
import type { RedisConnections } from "../redis/connections.ts";
import type { Logger } from "../telemetry/logger.ts";
import { asksForKeys, jwksUrl } from "./access-settings.ts";
import { readEdgeSecrets } from "./edge-secrets.ts";
import type { Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** What `--api-keys` says for the Redis of the queues. */
export const keysInRedis = "redis";

/**
 * Opens what callers' keys and tokens are held against; undefined where the settings ask for none.
 *
 * @param redis of the queues, where there are any
 */
export async function openAccess(
  settings: Settings,
  log: Logger,
  redis?: Pick<RedisConnections, "commands" | "subscriber">,
): Promise<Access | undefined> {
  if (!asksForKeys(settings)) return undefined;
  const { apiKeys, healthAnonymous } = settings;
  const keys = apiKeys === undefined ? undefined : await openKeys(storeOf(apiKeys, redis), log);
  const tokens = await openTokens(settings);
  const edge = await openEdge(settings, keys, redis);
  return { authenticator: authenticator({ keys, tokens }), healthAnonymous, edge };
}

function storeOf(apiKeys: string, redis?: Pick<RedisConnections, "commands" | "subscriber">) {
  if (apiKeys !== keysInRedis) return fileKeyStore(apiKeys);
  if (redis) return redisKeyStore(redis.commands, redis.subscriber);
  throw new UsageError("--api-keys: given redis, which serve has none of; expected a file");
}

/** Looked at for as long as the process lives. */
async function openKeys(store: KeyStore, log: Logger): Promise<KeyRing> {
  try {
    const keys = await KeyRing.open({ store, log });
    const how = "tidepool keys create makes one, which counts within a second";
    if (keys.size === 0) log.warn(`there is no API key in ${store.name}: ${how}`);
    return keys;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`--api-keys: given ${store.name}, ${reason}`, { cause });
  }
}

async function openEdge(
  { edgeSecretFile }: Settings,
  keys: KeyRing | undefined,
  redis?: Pick<RedisConnections, "commands">,
): Promise<EdgeTrust | undefined> {
  if (edgeSecretFile === undefined) return undefined;
  const used = redis
    ? wordsInRedis(redis.commands, wordLifeMilliseconds)
    : wordsInMemory(wordLifeMilliseconds);
  return new EdgeTrust({ secrets: await readEdgeSecrets(edgeSecretFile), keys, used });
}

async function openTokens(settings: Settings): Promise<TokenVerifier | undefined> {
  const { jwtIssuer, jwtAudience, jwtAlgorithm } = settings;
  if (jwtIssuer === undefined || jwtAudience === undefined) return undefined;
  // Not everybody has tokens: the library is loaded for those who do.
  const { TokenVerifier } = await import("../auth/token-verifier.ts");
  return new TokenVerifier({
    keys: await tokenKeys(settings),
    issuer: jwtIssuer,
    audience: jwtAudience,
    algorithms: jwtAlgorithm.length > 0 ? jwtAlgorithm : ["RS256", "ES256"],
    clockToleranceSeconds: settings.jwtClockToleranceSecs,
    claims: {
      tenant: settings.jwtTenantClaim,
      scope: settings.jwtScopeClaim,
      models: settings.jwtModelsClaim,
    },
  });
}

async function tokenKeys({ jwtJwksUrl, jwtKeyFile = "" }: Settings) {
  const { remoteTokenKeys, staticTokenKeys } = await import("../auth/token-keys.ts");
  if (jwtJwksUrl !== undefined) return remoteTokenKeys(jwksUrl(jwtJwksUrl));
  try {
    return staticTokenKeys(await readFile(jwtKeyFile, "utf8"));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`--jwt-key-file: given ${jwtKeyFile}, ${reason}`, { cause });
  }
}
