import { scopes } from "../../auth/scope.ts";
import { tokenAlgorithms } from "../../auth/token-algorithms.ts";
import { flag, optional, repeated } from "../flag.ts";
import { boolean, choice, integer, path, positiveNumber, text } from "../flag-type.ts";

/** Who may call. */
export const accessFlags = {
  "api-keys": optional(
    path,
    "Where API keys are kept: a file, or redis for the Redis of the queues. Callers must show one; tidepool keys makes them.",
  ),
  "health-anonymous": flag(
    boolean,
    true,
    "Tell callers without a key whether the server lives and is ready, for probes.",
  ),
  "edge-secret-file": optional(
    path,
    "File with the secrets of edge Workers, one a line: a call that is signed with one of them is that of the caller it names.",
  ),
  "metrics-anonymous": flag(boolean, false, "Show the metrics to callers without a key, too."),
  "jwt-jwks-url": optional(
    text,
    "URL of the keys (JWKS) of an issuer of tokens (JWT), which callers may show instead of a key.",
  ),
  "jwt-key-file": optional(path, "The same as a file: a JWKS, or one public key in PEM."),
  "jwt-issuer": optional(text, "What a token's iss must be."),
  "jwt-audience": optional(text, "What a token's aud must be, or name among others."),
  "jwt-algorithm": repeated(
    { ...choice(...tokenAlgorithms), name: "algorithm with a public key" },
    "Algorithm that a token may be signed with: RS, PS or ES with 256, 384 or 512, or EdDSA; without any RS256 and ES256.",
  ),
  "jwt-clock-tolerance-secs": flag(
    integer(0, 300),
    5,
    "Seconds that the issuer's clock may differ from this one.",
  ),
  "jwt-tenant-claim": flag(text, "tenant", "Claim that names the tenant; 'default' without it."),
  "jwt-scope-claim": flag(text, "scope", "Claim that lists the scopes; none without it."),
  "jwt-models-claim": flag(
    text,
    "models",
    "Claim that lists the models, with * for any text; all without it.",
  ),
};

/** What `tidepool keys` is told of a key. */
export const keyFlags = {
  "key-name": optional(text, "Name of the new key, for people."),
  "key-tenant": flag(text, "default", "Tenant of the new key."),
  "key-scope": repeated(
    choice(...scopes),
    "What the new key's holder may do; without any infer and read.",
  ),
  "key-model": repeated(
    text,
    "Models that exist for the new key's holder, with * for any text; all without it.",
  ),
  "key-expires-days": optional(positiveNumber, "Days until the new key expires; never without it."),
  "key-grace-secs": flag(
    integer(0, 31 * 86_400),
    3600,
    "Seconds for which the secret before a rotation stays valid.",
  ),
};
