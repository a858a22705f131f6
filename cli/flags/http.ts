import { flag, noEffect, repeated } from "../flag.ts";
import { boolean, integer, pattern, port, positiveNumber, text } from "../flag-type.ts";
import { restrictedCategories } from "../restriction.ts";

/** The HTTP endpoint. */
export const httpFlags = {
  "allow-http": flag(boolean, true, "Serve HTTP."),
  "http-address": flag(text, "127.0.0.1", "Address of the HTTP endpoint."),
  "http-port": flag(port, 8000, "Port of the HTTP endpoint; 0 takes any free one."),
  "reuse-http-port": flag(boolean, false, "Share the HTTP port with other servers that do so."),
  "http-max-input-size": flag(
    integer(1),
    64 * 1024 * 1024,
    "Bytes that the body of one HTTP request may have, also after decompression.",
  ),
  "http-request-timeout-secs": flag(
    positiveNumber,
    300,
    "Seconds in which one HTTP request must arrive, head and body.",
  ),
  "http-header-forward-pattern": flag(
    pattern,
    "",
    "HTTP headers whose names match become parameters of the inference request.",
  ),
  "http-thread-count": noEffect(integer(1), "one event loop serves all HTTP connections"),
  "http-restricted-api": repeated(
    restrictedCategories,
    "Parts of the HTTP API that only callers with a header may use, as in inference:key=secret.",
  ),
};
