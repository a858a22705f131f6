import type { Http2Server, ServerHttp2Session } from "node:http2";
import type { Server } from "@grpc/grpc-js";

/** So much of one message may be on its way to us before we have read any of it. */
const streamWindowBytes = 4 * 1024 * 1024;

/** The same for all messages of a connection together. */
const connectionWindowBytes = 16 * 1024 * 1024;

/**
 * Widens the receive windows of every connection. HTTP/2 begins with 64 KiB, and a client that must wait for us after
 * every 64 KiB sends no more than 64 MB/s from a millisecond away. grpc-js has a setting for it in clients only and
 * keeps its HTTP/2 servers to itself: where they cannot be found, the windows stay as they are.
 */
export function widenWindows(server: Server): void {
  const servers: ReadonlyMap<Http2Server, unknown> | undefined = Reflect.get(
    server,
    "http2Servers",
  );
  for (const http2Server of servers?.keys() ?? []) http2Server.on("session", widen);
}

function widen(session: ServerHttp2Session): void {
  session.settings({ initialWindowSize: streamWindowBytes });
  session.setLocalWindowSize(connectionWindowBytes);
}
