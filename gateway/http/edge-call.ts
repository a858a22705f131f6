import { hash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Caller } from "../../auth/caller.ts";
import type { EdgeFinding, EdgeTrust } from "../../auth/edge-trust.ts";
import { edgeCacheHeader } from "../../protocol/edge-cache.ts";
import { edgeWordHeader } from "../../protocol/edge-word.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";

/** Of calls that the edge Worker handed on. */
const findings = new WeakMap<IncomingMessage, EdgeFinding>();

/** Who calls by the edge Worker's word; undefined for a call that came without one, or where none is trusted. */
export async function edgeCaller(
  trust: EdgeTrust | undefined,
  incoming: IncomingMessage,
): Promise<Caller | undefined> {
  const word = incoming.headers[edgeWordHeader];
  if (!trust || word === undefined) return undefined;
  const { method = "", url: target = "", headers } = incoming;
  const finding = await trust.find(String(word), {
    method,
    target,
    header: (name) => headers[name]?.toString(),
  });
  findings.set(incoming, finding);
  return finding.caller;
}

/** True for a call that the edge Worker handed on. */
export function cameFromEdge(incoming: IncomingMessage): boolean {
  return findings.has(incoming);
}

/** Tells the edge Worker, if the call came from there, that it may keep the answer, and as what. */
export function mayKeep(
  { incoming, outgoing }: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse },
  kind: string,
): void {
  if (cameFromEdge(incoming)) outgoing.setHeader(edgeCacheHeader, kind);
}

/** What the body must hash to, in hexadecimal, where the edge Worker has signed it. */
export function signedBodySha256(incoming: IncomingMessage): string | undefined {
  return findings.get(incoming)?.bodySha256 ?? undefined;
}

/** Why a body may not be read: the edge Worker has signed another one. */
export function wrongBody(incoming: IncomingMessage, body: Buffer): InferenceError | undefined {
  const expected = signedBodySha256(incoming);
  if (expected === undefined || hash("sha256", body, "hex") === expected) return undefined;
  return new InferenceError(
    StatusCode.Unauthenticated,
    "the edge's word for a call: its body is not the one that was signed",
  );
}
