import {
  createLocalJWKSet,
  createRemoteJWKSet,
  errors,
  jwtVerify,
  type JWTPayload,
  type JWTVerifyGetKey,
} from "jose";
import { tenantPattern } from "../../protocol/tenant.ts";
import type { Caller } from "./caller.ts";
import { type Env, listed } from "./env.ts";

const usualAlgorithms = "RS256,ES256";
const clockToleranceSeconds = 5;
const mostTextLength = 256;

/** True where tokens can be held against keys of their issuer. */
export function takesTokens({ JWT_JWKS, JWT_JWKS_URL }: Env): boolean {
  return JWT_JWKS !== undefined || JWT_JWKS_URL !== undefined;
}

/**
 * Who holds a token, by its claims; undefined for a token that is not valid. Rejects where the issuer's keys cannot be
 * had.
 */
export async function tokenCaller(env: Env, token: string): Promise<Caller | undefined> {
  const verified = await jwtVerify(token, issuerKeys(env), {
    ...(env.JWT_ISSUER !== undefined && { issuer: env.JWT_ISSUER }),
    ...(env.JWT_AUDIENCE !== undefined && { audience: env.JWT_AUDIENCE }),
    algorithms: listed(env.JWT_ALGORITHMS ?? usualAlgorithms).filter(isPublic),
    clockTolerance: clockToleranceSeconds,
    requiredClaims: ["sub", "exp"],
  }).catch((cause: unknown) => {
    if (isAway(cause)) throw cause;
    return undefined;
  });
  return verified && callerOf(verified.payload, env);
}

/** None that verifies and signs by one secret: a public key must never become one. */
function isPublic(algorithm: string): boolean {
  return /^(?:(?:RS|PS|ES)(?:256|384|512)|EdDSA)$/u.test(algorithm);
}

/** The claims as a gateway reads them; what cannot be read lets the edge answer nothing in its place. */
function callerOf(payload: JWTPayload, env: Env): Caller | undefined {
  const { [env.JWT_TENANT_CLAIM ?? "tenant"]: tenant = "default" } = payload;
  const scope = payload[env.JWT_SCOPE_CLAIM ?? "scope"];
  const models = payload[env.JWT_MODELS_CLAIM ?? "models"];
  const { sub } = payload;
  if (!isText(sub) || !isTenant(tenant)) return undefined;
  return {
    name: `token:${sub}`,
    tenant,
    scopes: entries(scope),
    models: models === undefined ? ["*"] : entries(models),
    word: { kind: "token", claims: { sub, tenant, scope, models } },
  };
}

function isTenant(value: unknown): value is string {
  return typeof value === "string" && tenantPattern.test(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= mostTextLength;
}

function entries(value: unknown): readonly unknown[] {
  if (typeof value === "string") return value.split(" ").filter((one) => one !== "");
  return Array.isArray(value) ? value : [];
}

let known: { readonly from: string; readonly find: JWTVerifyGetKey } | undefined;

/** Made once for an isolate: a set from an address is fetched when it is needed, and again every ten minutes. */
function issuerKeys({ JWT_JWKS, JWT_JWKS_URL = "" }: Env): JWTVerifyGetKey {
  const from = JWT_JWKS ?? JWT_JWKS_URL;
  if (known?.from !== from) known = { from, find: findIn(JWT_JWKS, JWT_JWKS_URL) };
  return known.find;
}

function findIn(set: string | undefined, url: string): JWTVerifyGetKey {
  if (set !== undefined) return createLocalJWKSet(JSON.parse(set));
  // An unknown key may be a new one, so the set is fetched again, but not for every token that somebody makes up.
  return createRemoteJWKSet(new URL(url), { cooldownDuration: 1000 });
}

/** True for what says nothing about the token. */
function isAway(cause: unknown): boolean {
  return (
    !(cause instanceof errors.JOSEError) ||
    cause instanceof errors.JWKSTimeout ||
    cause instanceof errors.JWKSInvalid ||
    cause.code === errors.JOSEError.code
  );
}
