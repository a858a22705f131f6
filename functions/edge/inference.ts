import { splitBody } from "../../protocol/binary-data.ts";
import { withCacheControl } from "../../protocol/cache-control.ts";
import { cacheKey } from "../../protocol/cache-key.ts";
import { edgeCacheHeader } from "../../protocol/edge-cache.ts";
import { inferenceHeaderContentLength } from "../../protocol/headers.ts";
import { type ParsedInfer, parseInfer } from "../../protocol/infer-json.ts";
import { noParameters } from "../../protocol/parameters.ts";
import { type InferAnswer, withId, withoutId } from "./answer-id.ts";
import type { Call } from "./call.ts";
import { may } from "./caller.ts";
import { cacheAddress, findKept, keep, keepableBytes } from "./edge-cache.ts";
import { versionDigest } from "./metadata.ts";
import { passOn } from "./pass-on.ts";
import { sha256 } from "./sha256.ts";

/** Names that need no decoding. */
const inferPath =
  /^(?<path>\/v2\/models\/(?<model>\w[\w.-]*)(?:\/versions\/(?<version>[0-9]+))?)\/infer$/u;

/** With any of these the call wants more than an answer, or its body is not what it seems. */
const unusualHeaders = ["content-encoding", "idempotency-key", "origin", "prefer", "webhook-url"];

/** What an infer call asks, where the edge may answer it. */
interface Asked extends ParsedInfer {
  readonly tenant: string;
  /** Of the version that would answer. */
  readonly digest: string;
}

/**
 * Answers an infer call from the cache, or keeps its answer there, where the gateway says that answers of the version may
 * be kept; undefined for any other call.
 */
export async function inference(call: Call): Promise<Response | undefined> {
  const asked = await askedIn(call);
  if (!asked) return undefined;
  const { id, cacheControl } = asked.request;
  const address = await addressOf(asked);
  const kept = cacheControl === "no-cache" ? undefined : await findKept(address);
  if (kept) {
    call.isHit = true;
    return asResponse(withId(await inferAnswer(kept), id), kept.headers);
  }
  const answer = await passOn(call);
  // Another version may have been loaded since the digest was asked for.
  if (answer.headers.get(edgeCacheHeader) !== asked.digest) return answer;
  const body = await keepableBytes(answer, call.env.BUFFERED_BYTES);
  if (!body) return answer;
  const common = withoutId({ body, headLength: headLengthIn(answer.headers) }, id);
  if (common) keep(call, address, asResponse(common, answer.headers), call.env.ANSWER_SECONDS);
  return new Response(body, answer);
}

async function askedIn(call: Call): Promise<Asked | undefined> {
  const { request, url, caller, body } = call;
  const target = targetIn(url);
  if (!caller || !target || !isPlain(request) || !(body instanceof Uint8Array)) return undefined;
  if (!may(caller, "infer", target.model)) return undefined;
  const digest = await versionDigest(call, target.path);
  if (digest === undefined) return undefined;
  const parsed = parsedBody(body, request.headers, target);
  return parsed && { ...parsed, tenant: caller.tenant, digest };
}

interface Target {
  /** Of the model or its version. */
  readonly path: string;
  readonly model: string;
  readonly version: string;
}

function targetIn({ pathname, search }: URL): Target | undefined {
  const { path, model, version = "" } = inferPath.exec(pathname)?.groups ?? {};
  if (path === undefined || model === undefined || search !== "") return undefined;
  return { path, model, version };
}

function isPlain({ method, headers }: Request): boolean {
  return (
    method === "POST" &&
    unusualHeaders.every((name) => !headers.has(name)) &&
    !headers.get("accept")?.includes("text/event-stream")
  );
}

/** Undefined for a body that cannot be read, as a gateway will say, for one without JSON, and for what is not to be kept. */
function parsedBody(
  body: Uint8Array,
  headers: Headers,
  { model, version }: Target,
): ParsedInfer | undefined {
  try {
    const jsonLength = headers.get(inferenceHeaderContentLength) ?? undefined;
    const { head, tail } = splitBody(body, jsonLength);
    if (head.length === 0) return undefined;
    const target = { modelName: model, modelVersion: version, forwarded: noParameters };
    const parsed = parseInfer(head, tail, target);
    const cacheControl = headers.get("cache-control") ?? undefined;
    const request = withCacheControl(parsed.request, cacheControl);
    const isKept = !request.sequence && request.cacheControl !== "no-store";
    return isKept ? { ...parsed, request } : undefined;
  } catch {
    return undefined;
  }
}

/** Of the request's cache key, and of how the answer is written. */
async function addressOf({ request, binaryOutputs, tenant, digest }: Asked): Promise<string> {
  const { modelName, modelVersion } = request;
  const written = JSON.stringify(binaryOutputs === "all" ? "all" : [...binaryOutputs].toSorted());
  const scope = { tenant, modelName, modelVersion, digest, outputs: [] };
  const key = cacheKey(scope, request, (pieces) => sha256([...pieces, written]));
  return cacheAddress(tenant, await key);
}

async function inferAnswer(kept: Response): Promise<InferAnswer> {
  const body = new Uint8Array(await kept.arrayBuffer());
  return { body, headLength: headLengthIn(kept.headers) };
}

function headLengthIn(headers: Headers): number | undefined {
  const length = headers.get(inferenceHeaderContentLength);
  return length === null ? undefined : Number(length);
}

function asResponse({ body, headLength }: InferAnswer, given: Headers): Response {
  const headers = new Headers(given);
  if (headLength !== undefined) headers.set(inferenceHeaderContentLength, String(headLength));
  return new Response(body, { headers });
}
