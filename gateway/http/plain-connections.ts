import type { Server } from "node:http";
import type { Socket } from "node:net";
import { type AnswerPlain, PlainConnection } from "./plain-connection.ts";

/** What is asked of an app for its plainest calls. */
export interface PlainCalls {
  readonly answer: AnswerPlain;
  readonly maxInputBytes: number;
}

/** Stands before node's HTTP server: a connection is read here until it asks for something that is not plain. */
export class PlainConnections {
  readonly #open = new Map<Socket, PlainConnection>();

  constructor(server: Server, calls: PlainCalls, keepAliveMilliseconds: number) {
    const toNode = server.listeners("connection");
    server.removeAllListeners("connection");
    const handOver = (socket: Socket): void => {
      this.#open.delete(socket);
      for (const listener of toNode) listener.call(server, socket);
    };
    server.on("connection", (socket: Socket) => {
      const connection = new PlainConnection(socket, { ...calls, keepAliveMilliseconds, handOver });
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
