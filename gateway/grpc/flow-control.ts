import type { ServerHttp2Session } from "node:http2";
import type { Server } from "@grpc/grpc-js";
import { http2Servers } from "./http2-servers.ts";

/** So much of one message may be on its way to us before we have read any of it. */
const streamWindowBytes = 4 * 1024 * 1024;

/** The same for all messages of a connection together. */
const connectionWindowBytes = 16 * 1024 * 1024;

/**
 * Widens the receive windows of every connection. HTTP/2 begins with 64 KiB, and a client that must wait for us after
 * every 64 KiB sends no more than 64 MB/s from a millisecond away. grpc-js has a setting for it in clients only.
 */
export function widenWindows(server: Server): void {
  for (const http2Server of http2Servers(server)) http2Server.on("session", widen);
}

function widen(session: ServerHttp2Session): void {
  session.settings({ initialWindowSize: streamWindowBytes });
  session.setLocalWindowSize(connectionWindowBytes);
}
