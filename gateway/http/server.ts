import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import type { HttpApp } from "./routes.ts";

export interface HttpAddress {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** Several processes or threads may listen on the port and share its connections. */
  readonly reusePort?: boolean;
}

/** A server that listens. */
export interface HttpServer {
  readonly port: number;
  /** Takes no new connection and resolves when every request is answered; those left when the signal comes are cut off. */
  close(signal: AbortSignal): Promise<void>;
}

/** Longer than balancers and client pools keep an idle connection, so that it is they who close it, and no request is lost. */
const keepAliveMilliseconds = 75_000;

/** How often a server that closes looks for connections that have become idle. */
const sweepMilliseconds = 20;

/** Serves an app over HTTP/1.1; rejects with the system's error when the address cannot be had. */
export async function listenHttp(app: HttpApp, address: HttpAddress): Promise<HttpServer> {
  const listener = getRequestListener(app.fetch);
  const server = createServer({ keepAliveTimeout: keepAliveMilliseconds, noDelay: true });
  const serve = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    void listener(incoming, outgoing);
  };
  server.on("request", serve);
  // Who asks before sending a body is told to go on only when somebody reads it: see readBody.
  server.on("checkContinue", serve);
  const port = await listen(server, address);
  return { port, close: (signal) => close(server, signal) };
}

function listen(server: Server, address: HttpAddress): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.once("error", reject);
  server.listen({ ...address }, () => {
    server.off("error", reject);
    const bound = server.address();
    resolve(typeof bound === "object" && bound ? bound.port : address.port);
  });
  return promise;
}

function close(server: Server, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const sweep = setInterval(() => server.closeIdleConnections(), sweepMilliseconds);
  const cutOff = (): void => server.closeAllConnections();
  signal.addEventListener("abort", cutOff, { once: true });
  server.close(() => {
    clearInterval(sweep);
    signal.removeEventListener("abort", cutOff);
    resolve();
  });
  if (signal.aborted) cutOff();
  return promise;
}
