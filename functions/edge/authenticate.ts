import { shownCredential, type ShownCredential } from "../../protocol/credentials.ts";
import type { Caller } from "./caller.ts";
import type { Env } from "./env.ts";
import { keyCaller } from "./key-caller.ts";
import { limitedLookUp } from "./rate-limit.ts";
import { refusal, unauthenticated } from "./refusal.ts";
import { takesTokens, tokenCaller } from "./token-caller.ts";

/** Probes, and questions of browsers before a call, carry no keys; whether they are answered is the gateways' to say. */
const openPaths: ReadonlySet<string> = new Set(["/v2/health/live", "/v2/health/ready"]);

/** Who calls, undefined for a call that may be nobody's; or the answer to who shows nothing good. */
export async function authenticate(
  request: Request,
  env: Env,
): Promise<Caller | Response | undefined> {
  const { headers, method, url } = request;
  const authorization = headers.get("authorization") ?? undefined;
  const shown = shownCredential(authorization, headers.get("x-api-key") ?? undefined);
  if (shown) return callerWith(shown, request, env);
  if (method === "OPTIONS" || openPaths.has(new URL(url).pathname)) return undefined;
  const given = authorization === undefined ? "nothing" : "an Authorization that cannot be used";
  return unauthenticated(
    `credentials: given ${given}, expected an API key or a token as Authorization: Bearer, or the key as X-API-Key`,
  );
}

async function callerWith(
  { kind, text }: ShownCredential,
  request: Request,
  env: Env,
): Promise<Caller | Response> {
  try {
    const caller = await (kind === "key"
      ? env.KEYS && keyCaller(env.KEYS, text, () => limitedLookUp(request, env))
      : takesTokens(env) && tokenCaller(env, text));
    if (caller) return caller;
  } catch (cause) {
    // oxlint-disable-next-line no-console -- the log of a Worker
    console.error("credentials cannot be looked up", cause);
    const message = "credentials cannot be looked up at the moment";
    return refusal(503, message, { "Retry-After": "1" });
  }
  const what = kind === "key" ? "API key" : "token";
  return unauthenticated(`${what}: given one that is not valid`);
}
