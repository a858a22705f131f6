import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { WebServer } from "../tls/web-server.ts";
import type { PlainConnections } from "./plain-connections.ts";

/** How often a server that closes looks for connections that it need not wait for. */
const sweepMilliseconds = 20;

/** A client that has connected and not asked yet gets so long to do it when the server closes. */
const newcomerMilliseconds = 500;

/** The answer that a connection is at work on; node keeps it there and has no other way to ask. */
export function currentAnswer(socket: Duplex): ServerResponse | null | undefined {
  return Reflect.get(socket, "_httpMessage");
}

/** The open connections of a server, so that it can close without waiting for those on which nobody asks anything. */
export class Connections {
  readonly #web: WebServer;
  readonly #plain: PlainConnections | undefined;
  readonly #sockets = new Set<Socket>();

  constructor(web: WebServer, plain?: PlainConnections) {
    this.#web = web;
    this.#plain = plain;
    web.server.on(web.arrival, (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
  }

  /** Takes no new one, and resolves when the last has ended; those left when the signal comes are cut off. */
  close(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { server } = this.#web;
    const began = performance.now();
    this.#plain?.close();
    this.#web.endHandshakes();
    const sweep = setInterval(() => {
      server.closeIdleConnections();
      if (performance.now() - began >= newcomerMilliseconds) this.#closeSilent();
    }, sweepMilliseconds);
    const cutOff = (): void => {
      for (const socket of this.#sockets) socket.destroy();
    };
    signal.addEventListener("abort", cutOff, { once: true });
    server.close(() => {
      clearInterval(sweep);
      signal.removeEventListener("abort", cutOff);
      resolve();
    });
    if (signal.aborted) cutOff();
    return promise;
  }

  /** To node a connection that has sent nothing, or half of a head, is not idle but at the beginning of a request. */
  #closeSilent(): void {
    for (const socket of this.#sockets) {
      const answering = currentAnswer(socket) || this.#plain?.answering(socket);
      if (!answering && socket.writableLength === 0) socket.destroy();
    }
  }
}
