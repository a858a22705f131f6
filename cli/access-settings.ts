import { isIP } from "node:net";
import type { Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** True when callers must show a key or a token. */
export function asksForKeys(settings: Settings): boolean {
  const { apiKeys, jwtJwksUrl, jwtKeyFile, edgeSecretFile } = settings;
  return [apiKeys, jwtJwksUrl, jwtKeyFile, edgeSecretFile].some((given) => given !== undefined);
}

/** True for an address that only this machine reaches. */
export function isLoopback(address: string): boolean {
  if (isIP(address) === 4) return address.startsWith("127.");
  return address === "::1" || address === "localhost";
}

/** Throws for flags about callers that do not go together. */
export function checkAccess(settings: Settings): void {
  if (settings.allowAnonymous && asksForKeys(settings)) {
    throw new UsageError(
      "--allow-anonymous: given with --api-keys, --jwt-jwks-url, --jwt-key-file or --edge-secret-file, expected one of them",
    );
  }
  checkTokens(settings);
}

function checkTokens({ jwtJwksUrl, jwtKeyFile, jwtIssuer, jwtAudience }: Settings): void {
  if (jwtJwksUrl !== undefined && jwtKeyFile !== undefined) {
    throw new UsageError("--jwt-key-file: given with --jwt-jwks-url, expected one of them");
  }
  const withKeys = jwtJwksUrl !== undefined || jwtKeyFile !== undefined;
  if (withKeys && (jwtIssuer === undefined || jwtAudience === undefined)) {
    throw new UsageError(
      "--jwt-jwks-url, --jwt-key-file: expected --jwt-issuer and --jwt-audience, too",
    );
  }
  if (!withKeys && (jwtIssuer !== undefined || jwtAudience !== undefined)) {
    throw new UsageError("--jwt-issuer: expected --jwt-jwks-url or --jwt-key-file, too");
  }
  if (jwtJwksUrl !== undefined) jwksUrl(jwtJwksUrl);
}

/** Whoever can change the keys on their way can be anybody. */
export function jwksUrl(text: string): URL {
  return guardedUrl("jwt-jwks-url", text);
}

/** A place that nobody else can pretend to be: by TLS, or on this machine. */
export function guardedUrl(flag: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const local = url?.protocol === "http:" && isLoopback(url.hostname.replaceAll(/[[\]]/gu, ""));
  if (url && (local || url.protocol === "https:")) return url;
  throw new UsageError(
    `--${flag}: given '${text}', expected a URL of https, or of http on loopback`,
  );
}
