import type { Http2Server } from "node:http2";
import type { Server } from "@grpc/grpc-js";

/**
 * The HTTP/2 servers under a gRPC server, for what grpc-js has no setting for. It keeps them to itself: where they cannot
 * be found the list is empty, and everything works as grpc-js does it.
 */
export function http2Servers(server: Server): readonly Http2Server[] {
  const servers: ReadonlyMap<Http2Server, unknown> | undefined = Reflect.get(
    server,
    "http2Servers",
  );
  return [...(servers?.keys() ?? [])];
}
