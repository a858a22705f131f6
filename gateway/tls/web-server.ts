import { createServer, type Server, type ServerOptions } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { Socket } from "node:net";
import { type PortTls, secure, secureOptions } from "./secure-server.ts";

/** Takes a connection on which requests can be read. */
export type Enter = (socket: Socket) => void;

/** A server of node's that speaks HTTP/1.1, plain or behind TLS. */
export interface WebServer {
  readonly server: Server;
  /** The event that brings a connection on which requests can be read. */
  readonly arrival: "connection" | "secureConnection";
  /** Lets another one have the connections before node; gives what hands them on. */
  readonly divert: (first: Enter) => Enter;
  /** Ends connections that have not come so far. */
  readonly endHandshakes: () => void;
}

/** Makes a server that does not listen yet. @param tls without it connections are not encrypted */
export function createWebServer(options: ServerOptions, tls: PortTls | undefined): WebServer {
  if (!tls) {
    const server = createServer(options);
    const divert = divertible(server, "connection");
    return { server, arrival: "connection", divert, endHandshakes() {} };
  }
  const server = createSecureServer({ ...options, ...secureOptions(tls, "http/1.1") });
  const divert = divertible(server, "secureConnection");
  const { end } = secure(server, tls);
  return { server, arrival: "secureConnection", divert, endHandshakes: end };
}

function divertible(server: Server, arrival: WebServer["arrival"]): WebServer["divert"] {
  const listeners = server.listeners(arrival);
  server.removeAllListeners(arrival);
  const toNode: Enter = (socket) => {
    for (const listener of listeners) listener.call(server, socket);
  };
  let enter = toNode;
  server.on(arrival, (socket: Socket) => enter(socket));
  return (first) => {
    enter = first;
    return toNode;
  };
}
