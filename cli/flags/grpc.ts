import { flag, noEffect, optional, repeated } from "../flag.ts";
import { boolean, choice, integer, path, pattern, port, text } from "../flag-type.ts";
import { restrictedCategories } from "../restriction.ts";

const pings = "idle connections are pinged, too, and clients may ping as they like";

/** The gRPC endpoint. */
export const grpcFlags = {
  "allow-grpc": flag(boolean, true, "Serve gRPC."),
  "grpc-address": flag(text, "127.0.0.1", "Address of the gRPC endpoint."),
  "grpc-port": flag(port, 8001, "Port of the gRPC endpoint; 0 takes any free one."),
  "reuse-grpc-port": flag(boolean, false, "Share the gRPC port with other servers that do so."),
  "grpc-header-forward-pattern": flag(
    pattern,
    "",
    "gRPC metadata whose names match become parameters of the inference request.",
  ),
  "grpc-use-ssl": flag(boolean, false, "Serve gRPC over TLS."),
  "grpc-use-ssl-mutual": flag(boolean, false, "Serve gRPC over TLS, to clients with certificates."),
  "grpc-server-cert": optional(path, "PEM file of the server's certificate."),
  "grpc-server-key": optional(path, "PEM file of the server's private key."),
  "grpc-root-cert": optional(path, "PEM file of the authority that signs clients' certificates."),
  "grpc-infer-response-compression-level": noEffect(
    choice("none", "low", "medium", "high"),
    "responses are sent as they are",
  ),
  "grpc-keepalive-time": flag(integer(1), 7_200_000, "Milliseconds between keepalive pings."),
  "grpc-keepalive-timeout": flag(
    integer(1),
    20_000,
    "Milliseconds to wait for the answer to a ping before the connection is closed.",
  ),
  "grpc-keepalive-permit-without-calls": noEffect(boolean, pings),
  "grpc-http2-max-pings-without-data": noEffect(integer(0), pings),
  "grpc-http2-min-recv-ping-interval-without-data": noEffect(integer(0), pings),
  "grpc-http2-max-ping-strikes": noEffect(integer(0), pings),
  "grpc-max-connection-age": optional(integer(1), "Milliseconds that a connection may live."),
  "grpc-max-connection-age-grace": optional(
    integer(1),
    "Milliseconds that calls get to end on a connection that is too old.",
  ),
  "grpc-max-connections": flag(integer(1), 10_000, "gRPC connections that may be open."),
  "grpc-infer-thread-count": noEffect(integer(1), "one event loop serves all gRPC calls"),
  "grpc-infer-allocation-pool-size": noEffect(integer(0), "messages are not pooled"),
  "grpc-max-response-pool-size": noEffect(integer(0), "messages are not pooled"),
  "grpc-restricted-protocol": repeated(
    restrictedCategories,
    "Parts of gRPC that only callers with metadata may use, which is called triton-grpc-protocol-<header>.",
  ),
};
