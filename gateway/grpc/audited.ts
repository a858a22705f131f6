import type { Metadata } from "@grpc/grpc-js";
import type { AuditTrail, Change } from "../audit-trail.ts";
import { changeOfMethod } from "../changes.ts";
import { credentialsIn } from "./call-context.ts";

/** Who calls, as grpc-js tells it. */
interface Peer {
  readonly metadata: Metadata;
  getPeer(): string;
}

/** Begins what the audit log is told of a call; undefined for methods that change nothing. */
export function changeBy(
  peer: Peer,
  audit: AuditTrail | undefined,
  path: string,
  subject: string,
): Change | undefined {
  const action = audit && changeOfMethod(path);
  if (!action) return undefined;
  const [requestId] = peer.metadata.get("x-request-id");
  return audit.begin({
    action,
    subject,
    via: "grpc",
    address: peer.getPeer().replace(/:\d+$/u, ""),
    requestId: requestId === undefined ? undefined : String(requestId),
    credentials: credentialsIn(peer.metadata),
  });
}
