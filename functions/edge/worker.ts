import { edgeCacheHeader } from "../../protocol/edge-cache.ts";
import { authenticate } from "./authenticate.ts";
import { bodyOf, type Call } from "./call.ts";
import { type Env, wrongSetting } from "./env.ts";
import { inference } from "./inference.ts";
import { metadata } from "./metadata.ts";
import { passOn } from "./pass-on.ts";
import { limited } from "./rate-limit.ts";
import { refusal } from "./refusal.ts";

/**
 * The edge Worker: asks callers who they are and counts their calls, answers what is known already, and hands the rest to a
 * gateway that trusts its word.
 */
const worker: ExportedHandler<Env> = {
  async fetch(request, env, context) {
    const wrong = wrongSetting(env);
    if (wrong !== undefined) {
      // oxlint-disable-next-line no-console -- the log of a Worker
      console.error(wrong);
      return refusal(500, "the edge is not set up; its log says what is missing");
    }
    const began = Date.now();
    const { headers } = request;
    if (headers.has("upgrade") || headers.get("content-type")?.startsWith("application/grpc"))
      return refusal(501, "the edge speaks HTTP only: call a gateway for gRPC or WebSocket");
    const caller = await authenticate(request, env);
    if (caller instanceof Response) return caller;
    const tooMuch = await limited(request, caller, env);
    if (tooMuch) return tooMuch;
    const call: Call = {
      request,
      url: new URL(request.url),
      env,
      caller,
      body: await bodyOf(request, env.BUFFERED_BYTES),
      originMilliseconds: 0,
      isHit: false,
      later: (work) => context.waitUntil(work),
    };
    const answer = (await metadata(call)) ?? (await inference(call)) ?? (await passOn(call));
    return finished(call, answer, Date.now() - began);
  },
};

export default worker;

/** The answer as the client gets it: with the time that the edge took besides waiting for an origin. */
function finished(call: Call, answer: Response, milliseconds: number): Response {
  const headers = new Headers(answer.headers);
  headers.delete(edgeCacheHeader);
  const from = call.isHit ? ";desc=hit" : "";
  headers.append("Server-Timing", `edge;dur=${milliseconds - call.originMilliseconds}${from}`);
  const { status, statusText, body } = answer;
  return new Response(body, { status, statusText, headers });
}
