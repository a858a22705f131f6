import type { Caller } from "./caller.ts";
import { addressOf } from "./address.ts";
import type { Env } from "./env.ts";
import { refusal } from "./refusal.ts";

/** Counts a call; gives the answer to one that is too much for its caller, or for the address of one without any. */
export function limited(
  request: Request,
  caller: Caller | undefined,
  env: Env,
): Promise<Response | undefined> {
  return counted(caller?.name ?? `address:${addressOf(request)}`, "requests", env);
}

/** Counts the look-up of a key that may be made up; gives the answer to one that is too much for its address. */
export function limitedLookUp(request: Request, env: Env): Promise<Response | undefined> {
  return counted(`look-up:${addressOf(request)}`, "unknown API keys from one address", env);
}

async function counted(key: string, what: string, env: Env): Promise<Response | undefined> {
  const { success } = await env.RATE_LIMIT.limit({ key });
  if (success) return undefined;
  const { RATE_LIMIT_REQUESTS: most, RATE_LIMIT_SECONDS: seconds } = env;
  return refusal(429, `rate limit: given more than ${most} ${what} in ${seconds} seconds`, {
    // Nobody can be asked when the window ends: not later than this.
    "Retry-After": String(seconds),
    "RateLimit-Policy": `"edge";q=${most};w=${seconds}`,
    RateLimit: `"edge";r=0;t=${seconds}`,
  });
}
