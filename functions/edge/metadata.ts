import { edgeCacheHeader, keepMetadata } from "../../protocol/edge-cache.ts";
import { askOrigin } from "./ask-origin.ts";
import type { Call } from "./call.ts";
import { may, theEdge } from "./caller.ts";
import { cacheAddress, findKept, keep, keepableBytes } from "./edge-cache.ts";
import { passOn } from "./pass-on.ts";
import { sha256 } from "./sha256.ts";
import { ShortMemory } from "./short-memory.ts";

/** Names that need no decoding. What stands under "stats" is not metadata, and not the same for all callers. */
const metadataPath =
  /^\/v2(?:\/models\/(?!stats(?:\/|$))(?<model>\w[\w.-]*)(?:\/versions\/[0-9]+)?(?:\/config)?)?$/u;

/** Answers about the server and its models from the cache; undefined for any other call. */
export async function metadata(call: Call): Promise<Response | undefined> {
  const { request, url, caller, env } = call;
  const path = metadataPath.exec(url.pathname);
  const isPlain = request.method === "GET" && url.search === "" && !request.headers.has("origin");
  if (!path || !isPlain || !caller || !may(caller, "read", path.groups?.["model"] ?? ""))
    return undefined;
  const address = cacheAddress(caller.tenant, await sha256(["GET ", url.pathname]));
  const kept = await findKept(address);
  if (kept) {
    call.isHit = true;
    return kept;
  }
  const answer = await passOn(call);
  if (!answer.headers.has(edgeCacheHeader)) return answer;
  const body = await keepableBytes(answer, env.BUFFERED_BYTES);
  if (!body) return answer;
  keep(call, address, new Response(body, answer), env.METADATA_SECONDS);
  return new Response(body, answer);
}

/** By path; "" where there is none. */
const digests = new ShortMemory<string>(1000);

/**
 * The digest of the version that would answer now, or did so METADATA_SECONDS ago at most; undefined where its answers may
 * not be kept.
 *
 * @param path of the model or its version
 */
export async function versionDigest(call: Call, path: string): Promise<string | undefined> {
  const known = digests.recall(path);
  if (known !== undefined) return known || undefined;
  const answer = await askOrigin(call, {
    method: "GET",
    target: `${path}/config`,
    headers: new Headers(),
    body: null,
    caller: theEdge,
    isRepeatable: true,
  });
  void answer.body?.cancel();
  const kind = answer.headers.get(edgeCacheHeader) ?? keepMetadata;
  const digest = kind === keepMetadata ? "" : kind;
  digests.remember(path, digest, call.env.METADATA_SECONDS);
  return digest || undefined;
}
