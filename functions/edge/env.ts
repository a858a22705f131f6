/** What wrangler.toml and `wrangler secret` give the edge Worker. */
export interface Env {
  /** Records of API keys; without it, none is taken. */
  readonly KEYS?: KVNamespace;
  readonly RATE_LIMIT: RateLimit;
  readonly RATE_LIMIT_REQUESTS: number;
  readonly RATE_LIMIT_SECONDS: number;
  /** Of gateways, in the order in which they are asked, with commas between them. */
  readonly ORIGINS: string;
  /** What calls are signed with: a line of the gateways' `--edge-secret-file`. */
  readonly EDGE_SECRET: string;
  readonly METADATA_SECONDS: number;
  readonly ANSWER_SECONDS: number;
  readonly BUFFERED_BYTES: number;
  readonly JWT_ISSUER?: string;
  readonly JWT_AUDIENCE?: string;
  readonly JWT_JWKS_URL?: string;
  /** A JSON Web Key Set, in the place of its address. */
  readonly JWT_JWKS?: string;
  /** With commas between them; RS256 and ES256 without it. */
  readonly JWT_ALGORITHMS?: string;
  readonly JWT_TENANT_CLAIM?: string;
  readonly JWT_SCOPE_CLAIM?: string;
  readonly JWT_MODELS_CLAIM?: string;
}

const shortestSecret = 32;

/** What is wrong with the settings, if anything is: a Worker that is half set up answers nobody. */
export function wrongSetting(env: Env): string | undefined {
  const { EDGE_SECRET: secret, ORIGINS: origins } = env;
  if (typeof secret !== "string" || secret.length < shortestSecret)
    return `EDGE_SECRET: expected a text of at least ${shortestSecret} characters`;
  if (typeof origins !== "string" || !listed(origins).every(isOrigin))
    return `ORIGINS: given '${origins}', expected addresses as in https://gateway.example, without a path`;
  const { JWT_ISSUER, JWT_AUDIENCE, JWT_JWKS, JWT_JWKS_URL } = env;
  const takesTokens = JWT_JWKS !== undefined || JWT_JWKS_URL !== undefined;
  if (takesTokens && (JWT_ISSUER === undefined || JWT_AUDIENCE === undefined))
    return "JWT_JWKS_URL, JWT_JWKS: expected JWT_ISSUER and JWT_AUDIENCE, too";
  if (JWT_JWKS_URL !== undefined && !isGuarded(JWT_JWKS_URL))
    return `JWT_JWKS_URL: given '${JWT_JWKS_URL}', expected a URL of https, or of http on loopback`;
  return undefined;
}

/** The entries of a setting. */
export function listed(text: string): readonly string[] {
  return text.split(",").map((one) => one.trim());
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text;
}

/** Whoever can change the keys on their way can be anybody. */
function isGuarded(text: string): boolean {
  return /^https:\/\/|^http:\/\/(?:127\.0\.0\.1|localhost|\[::1\])[:/]/u.test(text);
}
