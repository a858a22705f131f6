import { timingSafeEqual } from "node:crypto";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import { keyDigest, keyIdIn, keyPrefix } from "./api-key.ts";
import type { Caller } from "./caller.ts";
import type { KeyRing } from "./key-ring.ts";
import type { TokenVerifier } from "./token-verifier.ts";

/** What a call shows to be let in, as its headers have it. */
export interface Credentials {
  /** `Authorization`: `Bearer` and an API key or a token. */
  readonly authorization: string | undefined;
  /** `X-API-Key`, which wins. */
  readonly apiKey: string | undefined;
}

/** Finds out who calls. */
export interface Authenticator {
  /** The caller, where that is known at once; undefined says that `authenticate` must look. Never throws. */
  known(given: Credentials): Caller | undefined;
  /** Rejects with UNAUTHENTICATED, or with UNAVAILABLE where nobody can tell at the moment. */
  authenticate(given: Credentials): Promise<Caller>;
}

export interface AuthenticatorParts {
  readonly keys: KeyRing | undefined;
  readonly tokens: TokenVerifier | undefined;
  /** Milliseconds since the epoch. @defaultValue Date.now */
  readonly now?: () => number;
}

/** What is longer is neither a key nor a token that anybody issues. */
const longestBytes = 8192;
const bearer = /^bearer +(?<token>[\w~+/.=-]+)$/iu;

/** Takes API keys and tokens, as far as there is something to hold them against. */
export function authenticator({ keys, tokens, now = Date.now }: AuthenticatorParts): Authenticator {
  return {
    known(given) {
      const text = textIn(given);
      if (text === undefined) return undefined;
      if (isKey(given, text)) return keys?.fresh ? holderOf(keys, text, now()) : undefined;
      return tokens?.known(text);
    },
    async authenticate(given) {
      const text = textIn(given);
      if (text === undefined) throw refusal(nothingIn(given), { keys, tokens });
      if (!isKey(given, text)) {
        if (tokens) return tokens.verify(text);
        throw refusal("a token", { keys, tokens });
      }
      if (!keys) throw refusal("an API key", { keys, tokens });
      await keys.refresh();
      const holder = holderOf(keys, text, now());
      if (holder) return holder;
      throw new InferenceError(StatusCode.Unauthenticated, "API key: given one that is not valid");
    },
  };
}

function isKey({ apiKey }: Credentials, text: string): boolean {
  return apiKey !== undefined || text.startsWith(keyPrefix);
}

function textIn({ authorization, apiKey }: Credentials): string | undefined {
  if (apiKey !== undefined) return apiKey;
  if (authorization === undefined || authorization.length > longestBytes) return undefined;
  return bearer.exec(authorization)?.groups?.["token"];
}

/** Whoever holds one of the key's secrets. All that a caller can measure is whether the id is known, which is no secret. */
function holderOf(keys: KeyRing, text: string, now: number): Caller | undefined {
  const id = keyIdIn(text);
  const key = id === undefined ? undefined : keys.find(id);
  if (!key || key.expiresAt <= now) return undefined;
  const given = keyDigest(text);
  const held = key.secrets.some(
    ({ digest, expiresAt }) => expiresAt > now && timingSafeEqual(digest, given),
  );
  return held ? key.caller : undefined;
}

function nothingIn({ authorization }: Credentials): string {
  return authorization === undefined ? "nothing" : "an Authorization that cannot be used";
}

function refusal(given: string, { keys, tokens }: AuthenticatorParts): InferenceError {
  const kinds = [keys && "an API key", tokens && "a token"].filter((kind) => kind !== undefined);
  const also = keys ? ", or the key as X-API-Key" : "";
  return new InferenceError(
    StatusCode.Unauthenticated,
    `credentials: given ${given}, expected ${kinds.join(" or ")} as Authorization: Bearer${also}`,
  );
}
