import { createPublicKey } from "node:crypto";
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  errors,
  type JSONWebKeySet,
  type JWK,
  type JWTVerifyGetKey,
} from "jose";
import { invalidArgument } from "../protocol/error.ts";

/** The public keys of those who issue tokens. */
export interface TokenKeys {
  /** The key for a token by what its head says. */
  readonly find: JWTVerifyGetKey;
  /** True for what is thrown when the keys cannot be had, which says nothing about the token. */
  isAway(cause: unknown): boolean;
}

/** An unknown key may be a new one, so the set is fetched again, but not for every token that somebody makes up. */
const refetchMilliseconds = 1000;

/** Keys from a JWKS URL: fetched when they are needed, and again every ten minutes. */
export function remoteTokenKeys(url: URL): TokenKeys {
  const find = createRemoteJWKSet(url, { cooldownDuration: refetchMilliseconds });
  return {
    find: (header, token) => find(header, token),
    isAway: (cause) =>
      !(cause instanceof errors.JOSEError) ||
      cause instanceof errors.JWKSTimeout ||
      cause instanceof errors.JWKSInvalid ||
      // Another status than 200, or no JSON.
      cause.code === errors.JOSEError.code,
  };
}

/** Keys from a text: a JWKS, or one public key in PEM. Throws INVALID_ARG for what is neither, or has no key that verifies. */
export function staticTokenKeys(text: string): TokenKeys {
  return { find: findIn(text), isAway: () => false };
}

function findIn(text: string): JWTVerifyGetKey {
  try {
    if (!text.trimStart().startsWith("{")) {
      const key = createPublicKey(text);
      return () => key;
    }
    const set: JSONWebKeySet = JSON.parse(text);
    const find = createLocalJWKSet(set);
    if (set.keys.some(verifies)) return (header, token) => find(header, token);
  } catch (cause) {
    throw invalidArgument("expected a public key in PEM, or a JSON Web Key Set", { cause });
  }
  throw invalidArgument(
    "its JSON Web Key Set has no public key to verify with, expected one of RSA, EC or OKP",
  );
}

/** False for a secret, a private key, and a key to encrypt with: none of them is ever taken. */
function verifies(key: JWK): boolean {
  if (key.kty === "oct" || "d" in key || (key.use ?? "sig") !== "sig") return false;
  try {
    createPublicKey({ key: { ...key }, format: "jwk" });
    return true;
  } catch {
    return false;
  }
}
