import { edgeCacheHeader } from "../../protocol/edge-cache.ts";
import type { Call } from "./call.ts";

/** What is kept of an answer besides its body. */
const keptHeaders = ["content-type", "inference-header-content-length", edgeCacheHeader];

/**
 * The address of an answer in the cache, which knows nothing but GET: of no server, so that nobody else can ask for it.
 *
 * @param digest of all that the answer depends on
 */
export function cacheAddress(tenant: string, digest: string): string {
  return `https://cache.invalid/${encodeURIComponent(tenant)}/${digest}`;
}

/** A kept answer; a cache that fails has none. */
export async function findKept(address: string): Promise<Response | undefined> {
  const found = await caches.default.match(address).catch(() => undefined);
  return found && new Response(found.body, { headers: chosen(found.headers) });
}

/** Keeps an answer, behind the one that the client gets. */
export function keep(call: Call, address: string, answer: Response, seconds: number): void {
  const headers = chosen(answer.headers);
  headers.set("cache-control", `max-age=${seconds}`);
  call.later(caches.default.put(address, new Response(answer.body, { headers })));
}

/** The bytes of an answer that may be kept; undefined where it is too large, or nobody knows how large. */
export async function keepableBytes(
  answer: Response,
  most: number,
): Promise<Uint8Array | undefined> {
  const length = Number(answer.headers.get("content-length") ?? NaN);
  if (answer.status !== 200 || answer.headers.has("content-encoding") || !(length <= most))
    return undefined;
  return new Uint8Array(await answer.arrayBuffer());
}

function chosen(headers: Headers): Headers {
  const found = keptHeaders.map((name) => [name, headers.get(name)] as const);
  return new Headers(
    found.flatMap(([name, value]) => (value === null ? [] : [[name, value] as [string, string]])),
  );
}
