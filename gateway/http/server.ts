import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { listen, type ListenAddress } from "../listen.ts";
import type { HttpApp } from "./app.ts";
import { Connections } from "./connections.ts";
import { PlainConnections } from "./plain-connections.ts";
import { jsonError } from "./routes.ts";
import { arrivalOptions, refuseUnreadable } from "./unreadable-request.ts";

export interface HttpAddress extends ListenAddress {
  /** So long may a request take to arrive, head and body. @defaultValue 300_000 */
  readonly requestMilliseconds?: number;
}

/** A server that listens. */
export interface HttpServer {
  readonly port: number;
  /** Takes no new connection and resolves when every request is answered; those left when the signal comes are cut off. */
  close(signal: AbortSignal): Promise<void>;
}

/** Longer than balancers and client pools keep an idle connection, so that it is they who close it, and no request is lost. */
const keepAliveMilliseconds = 75_000;

/** Serves an app over HTTP/1.1; rejects with the system's error when the address cannot be had. */
export async function listenHttp(app: HttpApp, address: HttpAddress): Promise<HttpServer> {
  const listener = getRequestListener(app.fetch, { errorHandler: badTarget });
  const limits = { requestMilliseconds: address.requestMilliseconds ?? 300_000 };
  const server = createServer({
    ...arrivalOptions(limits),
    keepAliveTimeout: keepAliveMilliseconds,
    noDelay: true,
  });
  const plain = app.plain && new PlainConnections(server, app.plain, keepAliveMilliseconds);
  const connections = new Connections(server, plain);
  const serve = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    if (!app.fastLane(incoming, outgoing)) void listener(incoming, outgoing);
  };
  server.on("request", serve);
  // Who asks before sending a body is told to go on only when somebody reads it: see readBody.
  server.on("checkContinue", serve);
  server.on("clientError", (cause, socket) => refuseUnreadable(cause, socket, limits));
  const port = await listen(server, address);
  return { port, close: (signal) => connections.close(signal) };
}

/** The app answers its own errors; what is left are requests that cannot be brought before it. */
function badTarget(): Response {
  return jsonError("the request's target or its Host header is not valid", 400);
}
