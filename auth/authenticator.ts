import { keyIdIn, shownCredential } from "../protocol/credentials.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import { keyDigest } from "./api-key.ts";
import type { Caller } from "./caller.ts";
import { keyHolder } from "./key-holder.ts";
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

/** Takes API keys and tokens, as far as there is something to hold them against. */
export function authenticator({ keys, tokens, now = Date.now }: AuthenticatorParts): Authenticator {
  return {
    known(given) {
      const shown = shownCredential(given.authorization, given.apiKey);
      if (!shown) return undefined;
      if (shown.kind === "token") return tokens?.known(shown.text);
      return keys?.fresh ? holderOf(keys, shown.text, now()) : undefined;
    },
    async authenticate(given) {
      const shown = shownCredential(given.authorization, given.apiKey);
      if (!shown) throw refusal(nothingIn(given), { keys, tokens });
      if (shown.kind === "token") {
        if (tokens) return tokens.verify(shown.text);
        throw refusal("a token", { keys, tokens });
      }
      if (!keys) throw refusal("an API key", { keys, tokens });
      await keys.refresh();
      const holder = holderOf(keys, shown.text, now());
      if (holder) return holder;
      throw new InferenceError(StatusCode.Unauthenticated, "API key: given one that is not valid");
    },
  };
}

function holderOf(keys: KeyRing, text: string, now: number): Caller | undefined {
  const id = keyIdIn(text);
  return id === undefined ? undefined : keyHolder(keys, id, keyDigest(text), now);
}

function nothingIn({ authorization }: Credentials): string {
  return authorization === undefined ? "nothing" : "an Authorization that cannot be used";
}

function refusal(given: string, { keys, tokens }: AuthenticatorParts): InferenceError {
  const kinds = [keys && "an API key", tokens && "a token"].filter((kind) => kind !== undefined);
  const also = keys ? ", or the key as X-API-Key" : "";
  // Neither where only the edge Worker says who calls.
  const expected =
    kinds.length === 0
      ? "a call by way of the edge"
      : `${kinds.join(" or ")} as Authorization: Bearer${also}`;
  const text = `credentials: given ${given}, expected ${expected}`;
  return new InferenceError(StatusCode.Unauthenticated, text);
}
