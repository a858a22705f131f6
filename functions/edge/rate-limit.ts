import type { Caller } from "./caller.ts";
import type { Env } from "./env.ts";
import { refusal } from "./refusal.ts";

/** Counts a call; gives the answer to one that is too much for its caller, or for the address of one without any. */
export async function limited(
  request: Request,
  caller: Caller | undefined,
  env: Env,
): Promise<Response | undefined> {
  const address = request.headers.get("cf-connecting-ip") ?? "";
  const { success } = await env.RATE_LIMIT.limit({ key: caller?.name ?? `address:${address}` });
  if (success) return undefined;
  const { RATE_LIMIT_REQUESTS: most, RATE_LIMIT_SECONDS: seconds } = env;
  return refusal(429, `rate limit: given more than ${most} requests in ${seconds} seconds`, {
    // Nobody can be asked when the window ends: not later than this.
    "Retry-After": String(seconds),
    "RateLimit-Policy": `"edge";q=${most};w=${seconds}`,
    RateLimit: `"edge";r=0;t=${seconds}`,
  });
}
