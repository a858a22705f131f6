import type { Socket } from "node:net";
import type { WebServer } from "../tls/web-server.ts";
import type { ConnectionBounds } from "./connection-bounds.ts";
import { type AnswerPlain, PlainConnection } from "./plain-connection.ts";
import type { RequestCounts } from "./request-counts.ts";

/** What is asked of an app for its plainest calls. */
export interface PlainCalls {
  readonly answer: AnswerPlain;
  readonly maxInputBytes: number;
}

/** Stands before node's HTTP server: a connection is read here until it asks for something that is not plain. */
export class PlainConnections {
  readonly #open = new Map<Socket, PlainConnection>();

  constructor(web: WebServer, calls: PlainCalls, bounds: ConnectionBounds, counts: RequestCounts) {
    const handOver = (socket: Socket, answered: number): void => {
      this.#open.delete(socket);
      counts.begin(socket, answered);
      toNode(socket);
    };
    const toNode = web.divert((socket) => {
      const connection = new PlainConnection(socket, { ...calls, ...bounds, handOver });
      this.#open.set(socket, connection);
      socket.once("close", () => this.#open.delete(socket));
    });
  }

  /** True while a call on it waits for its answer. */
  answering(socket: Socket): boolean {
    return this.#open.get(socket)?.answering ?? false;
  }

  /** Ends connections as soon as nothing is under way on them. */
  close(): void {
    for (const connection of this.#open.values()) connection.close();
  }
}
