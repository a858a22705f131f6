import type { Server } from "node:http";
import type { Socket } from "node:net";
import { currentAnswer } from "./connections.ts";

/** How long connections may live, and how many there may be. */
export interface ConnectionBounds {
  /**
   * A connection is closed on which nothing moves for so long: none asks, or an answer is not taken.
   * Longer than balancers and client pools keep an idle one, so that it is they who close it, and no request is lost.
   */
  readonly keepAliveMilliseconds: number;
  /** So many requests are answered on one connection. */
  readonly maxRequests: number;
  /** So many may be open; others are closed at once. */
  readonly maxConnections: number;
}

export const defaultBounds: ConnectionBounds = {
  keepAliveMilliseconds: 75_000,
  maxRequests: Infinity,
  maxConnections: 10_000,
};

/** Lets node's server obey the bounds that it has settings for. */
export function boundConnections(server: Server, bounds: ConnectionBounds): void {
  server.maxConnections = bounds.maxConnections;
  server.maxHeadersCount = 0;
  server.keepAliveTimeout = bounds.keepAliveMilliseconds;
  server.setTimeout(bounds.keepAliveMilliseconds, endStalled);
}

/** A model may take its time, and a body has a timeout of its own; a client that asks nothing, or takes nothing, has none. */
function endStalled(socket: Socket): void {
  if (!currentAnswer(socket) || socket.writableLength > 0) socket.destroy();
}
