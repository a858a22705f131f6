import type { HttpPath } from "../api-category.ts";
import type { AuditTrail } from "../audit-trail.ts";
import { changeOfPath } from "../changes.ts";
import { credentialsIn } from "../header-credentials.ts";
import type { HttpHandler } from "./exchange.ts";

/** Has the changes that calls of a path make told, by whoever answers the call, and those that are refused. */
export function audited(audit: AuditTrail, path: HttpPath, serve: HttpHandler): HttpHandler {
  const action = changeOfPath(path);
  if (!action) return serve;
  return async (context, next) => {
    if (context.req.method === "GET") return serve(context, next);
    const { headers, socket } = context.env.incoming;
    const requestId = headers["x-request-id"];
    const change = audit.begin({
      action,
      subject: context.req.param("model") ?? context.req.param("region") ?? "",
      via: "http",
      address: socket.remoteAddress,
      requestId: requestId === undefined ? undefined : String(requestId),
      credentials: credentialsIn(headers),
    });
    context.set("change", change);
    try {
      return await serve(context, next);
    } catch (cause) {
      change.end(context.get("caller"), cause);
      throw cause;
    }
  };
}
