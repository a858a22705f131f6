import { hash } from "node:crypto";
import { errors, jwtVerify } from "jose";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { Caller } from "./caller.ts";
import { callerOf, type ClaimNames } from "./token-claims.ts";
import type { TokenKeys } from "./token-keys.ts";

export interface TokenVerifierOptions {
  readonly keys: TokenKeys;
  readonly issuer: string;
  readonly audience: string;
  /** No token is believed that names another. */
  readonly algorithms: readonly string[];
  /** So far may the issuer's clock be from ours. */
  readonly clockToleranceSeconds: number;
  readonly claims: ClaimNames;
  /** Milliseconds since the epoch. @defaultValue Date.now */
  readonly now?: () => number;
}

interface Verified {
  readonly caller: Caller;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

/** Believed so long without another look at its signature, and at whether the issuer still has the key. */
const verifiedMilliseconds = 60_000;
const mostVerified = 10_000;

/** Holds tokens (JWT) against the keys of their issuer, and remembers those that were good. */
export class TokenVerifier {
  readonly #options: TokenVerifierOptions;
  readonly #now: () => number;
  /** By digest, so that no token stays in memory; the oldest first. */
  readonly #verified = new Map<string, Verified>();

  constructor(options: TokenVerifierOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /** How many are remembered. */
  get size(): number {
    return this.#verified.size;
  }

  /** The caller, if the token was verified a moment ago. */
  known(token: string): Caller | undefined {
    const verified = this.#verified.get(digestOf(token));
    return verified && this.#now() < verified.until ? verified.caller : undefined;
  }

  /** Rejects with UNAUTHENTICATED, or with UNAVAILABLE where the issuer's keys cannot be had. */
  async verify(token: string): Promise<Caller> {
    const { issuer, audience, algorithms, clockToleranceSeconds, claims } = this.#options;
    const now = this.#now();
    const { payload } = await jwtVerify(token, this.#options.keys.find, {
      issuer,
      audience,
      algorithms: [...algorithms],
      clockTolerance: clockToleranceSeconds,
      // Without an end there would be none: nobody can take a token back.
      requiredClaims: ["sub", "exp"],
      currentDate: new Date(now),
    }).catch((cause: unknown) => {
      throw this.#refusal(cause);
    });
    const caller = callerOf(payload, claims);
    const end = ((payload.exp ?? 0) + clockToleranceSeconds) * 1000;
    this.#remember(digestOf(token), { caller, until: Math.min(end, now + verifiedMilliseconds) });
    return caller;
  }

  #remember(digest: string, verified: Verified): void {
    this.#verified.delete(digest);
    this.#verified.set(digest, verified);
    const [oldest] = this.#verified.keys();
    if (this.#verified.size > mostVerified && oldest !== undefined) this.#verified.delete(oldest);
  }

  #refusal(cause: unknown): InferenceError {
    if (this.#options.keys.isAway(cause)) {
      const text = "the keys of the tokens' issuer cannot be had at the moment";
      return new InferenceError(StatusCode.Unavailable, text, { cause, retryAfterSeconds: 1 });
    }
    return new InferenceError(StatusCode.Unauthenticated, `token: ${reasonOf(cause)}`, { cause });
  }
}

function digestOf(token: string): string {
  return hash("sha256", token, "base64");
}

/** Claims are told only of tokens whose signature was good. */
function reasonOf(cause: unknown): string {
  if (cause instanceof errors.JWTExpired) return "it has expired";
  if (cause instanceof errors.JWTClaimValidationFailed) {
    return `its claim '${cause.claim}' is not the expected one`;
  }
  return "it is not one that the issuer signed with an algorithm that is taken";
}
