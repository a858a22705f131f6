import { flag, optional } from "../flag.ts";
import { boolean, path } from "../flag-type.ts";

/** TLS of all ports that serve clients. */
export const tlsFlags = {
  "tls-cert": optional(
    path,
    "PEM file of the server's certificate: HTTP, gRPC and metrics are served over TLS. A change is seen within seconds.",
  ),
  "tls-key": optional(path, "PEM file of the server's private key."),
  "tls-client-ca": optional(
    path,
    "PEM file of the authority that signs clients' certificates: every client must show one.",
  ),
  "metrics-tls": flag(
    boolean,
    true,
    "Serve metrics over TLS, too, where there is a certificate; without it for probes that have none.",
  ),
};
