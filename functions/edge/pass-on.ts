import { edgeWordHeader } from "../../protocol/edge-word.ts";
import { askOrigin, type Question } from "./ask-origin.ts";
import type { Call } from "./call.ts";

/** What an origin must not see: secrets of the caller, and what only the edge may say. */
const ownHeaders = ["authorization", "x-api-key", edgeWordHeader, "x-forwarded-for"];

/** Calls that may run twice: they change nothing that stays. */
const inference = /\/(?:infer|generate|generate_stream)$/u;

/** Hands a call on to an origin as it is. */
export function passOn(call: Call): Promise<Response> {
  const { method } = call.request;
  const headers = originHeaders(call);
  const { pathname, search } = call.url;
  const question: Question = {
    method,
    target: pathname + search,
    headers,
    body: call.body,
    caller: call.caller,
    isRepeatable: !(call.body instanceof ReadableStream) && mayRunTwice(method, pathname, headers),
  };
  return askOrigin(call, question);
}

/** The headers of a call as an origin gets them. */
function originHeaders({ request }: Call): Headers {
  const headers = new Headers(request.headers);
  for (const name of ownHeaders) headers.delete(name);
  // The network of the edge compresses, and it alone knows what the client can read.
  headers.set("accept-encoding", "identity");
  const address = request.headers.get("cf-connecting-ip");
  if (address !== null) headers.set("x-forwarded-for", address);
  return headers;
}

/** A job is not run again: it has been promised by the first origin. */
function mayRunTwice(method: string, path: string, headers: Headers): boolean {
  if (method === "GET" || method === "HEAD" || method === "OPTIONS") return true;
  const isJob = headers.has("prefer") || headers.has("idempotency-key");
  return method === "POST" && inference.test(path) && !isJob;
}
