/** What a call shows to be let in. */
export interface ShownCredential {
  readonly kind: "key" | "token";
  readonly text: string;
}

/** What every API key begins with, so that scanners of leaked secrets find it, and no token is taken for one. */
export const keyPrefix = "tp_";

/** What is longer is neither a key nor a token that anybody issues. */
const longestBytes = 8192;
const bearer = /^bearer +(?<token>[\w~+/.=-]+)$/iu;
const key = /^tp_(?<id>[0-9a-f]{12})_[\w-]{43}$/u;

/** The key or the token in a call's headers `X-API-Key`, which wins, and `Authorization`; undefined where they show none. */
export function shownCredential(
  authorization: string | undefined,
  apiKey: string | undefined,
): ShownCredential | undefined {
  if (apiKey !== undefined) return { kind: "key", text: apiKey };
  if (authorization === undefined || authorization.length > longestBytes) return undefined;
  const text = bearer.exec(authorization)?.groups?.["token"];
  if (text === undefined) return undefined;
  return { kind: text.startsWith(keyPrefix) ? "key" : "token", text };
}

/** The id in a key's text; undefined for what is no key. */
export function keyIdIn(text: string): string | undefined {
  return key.exec(text)?.groups?.["id"];
}
