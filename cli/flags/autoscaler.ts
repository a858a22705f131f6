import { flag, optional } from "../flag.ts";
import { boolean, integer, path, port, text } from "../flag-type.ts";

/** Who makes pool workers come and go. */
export const autoscalerFlags = {
  "autoscaler-interval-ms": flag(
    integer(10, 60_000),
    1000,
    "Milliseconds between two looks at every pool; demand for an empty pool is noticed at once.",
  ),
  "allow-keda": flag(boolean, false, "Answer KEDA as an external-push scaler."),
  "keda-address": flag(text, "127.0.0.1", "Address of the external scaler."),
  "keda-port": flag(port, 9090, "Port of the external scaler."),
  "keda-server-cert": optional(path, "Certificate of the external scaler, in PEM."),
  "keda-server-key": optional(path, "Its key, in PEM."),
  "keda-root-cert": optional(path, "Whose certificates KEDA must show; without it, none."),
  "keda-anonymous": flag(
    boolean,
    false,
    "Answer whoever reaches the external scaler from another machine without a certificate.",
  ),
};
