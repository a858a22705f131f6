import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { listen, type ListenAddress } from "../listen.ts";
import type { PortTls } from "../tls/secure-server.ts";
import { createWebServer } from "../tls/web-server.ts";
import type { HttpApp } from "./app.ts";
import { boundConnections, type ConnectionBounds, defaultBounds } from "./connection-bounds.ts";
import { Connections } from "./connections.ts";
import type { CrossOrigin } from "./cross-origin.ts";
import { refuseHead } from "./head-bounds.ts";
import { PlainConnections } from "./plain-connections.ts";
import { RequestCounts } from "./request-counts.ts";
import { jsonError } from "./routes.ts";
import { withSecurityHeaders } from "./security-headers.ts";
import { arrivalOptions, refuseUnreadable } from "./unreadable-request.ts";

export interface HttpAddress extends ListenAddress {
  /** So long may a request take to arrive, head and body. @defaultValue 300_000 */
  readonly requestMilliseconds?: number;
  readonly bounds?: ConnectionBounds;
  /** Without it connections are not encrypted. */
  readonly tls?: PortTls;
  /** Without it browsers let no page of another origin read answers. */
  readonly crossOrigin?: CrossOrigin;
}

/** A server that listens. */
export interface HttpServer {
  readonly port: number;
  /** Takes no new connection and resolves when every request is answered; those left when the signal comes are cut off. */
  close(signal: AbortSignal): Promise<void>;
}

/** Serves an app over HTTP/1.1; rejects with the system's error when the address cannot be had. */
export async function listenHttp(app: HttpApp, address: HttpAddress): Promise<HttpServer> {
  const { bounds = defaultBounds, crossOrigin, requestMilliseconds = 300_000 } = address;
  const fetch = withSecurityHeaders(app.fetch);
  const listener = getRequestListener(fetch, { hostname: "localhost", errorHandler: badTarget });
  const limits = { requestMilliseconds };
  // A request without Host gets its answer from refuseHead.
  const options = { ...arrivalOptions(limits), noDelay: true, requireHostHeader: false };
  const web = createWebServer(options, address.tls);
  const { server } = web;
  boundConnections(server, bounds);
  const counts = new RequestCounts(bounds.maxRequests);
  const plain = app.plain && new PlainConnections(web, app.plain, bounds, counts);
  const connections = new Connections(web, plain);
  const serve = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    counts.count(incoming, outgoing);
    if (refuseHead(incoming, outgoing) || crossOrigin?.(incoming, outgoing)) return;
    if (!app.fastLane(incoming, outgoing)) void listener(incoming, outgoing);
  };
  server.on("request", serve);
  // Who asks before sending a body is told to go on only when somebody reads it: see readBody.
  server.on("checkContinue", serve);
  server.on("checkExpectation", serve);
  server.on("clientError", (cause, socket) => refuseUnreadable(cause, socket, limits));
  const port = await listen(server, address);
  return { port, close: (signal) => connections.close(signal) };
}

/** The app answers its own errors; what is left are requests that cannot be brought before it. */
function badTarget(): Response {
  return jsonError("the request's target or its Host header is not valid", 400);
}
