import { flag, noEffect, optional, repeated } from "../flag.ts";
import { boolean, integer, pattern, port, positiveNumber, text } from "../flag-type.ts";
import { restrictedCategories } from "../restriction.ts";
import { headerName, pageOrigin } from "../cross-origin.ts";

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
  "http-keep-alive-timeout-secs": flag(
    positiveNumber,
    75,
    "Seconds after which an HTTP connection is closed that asks nothing, or takes nothing of an answer.",
  ),
  "http-max-connection-requests": optional(
    integer(1),
    "Requests that are answered on one HTTP connection; without it any number.",
  ),
  "http-max-connections": flag(integer(1), 10_000, "HTTP connections that may be open."),
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
  "cors-allow-origin": repeated(
    pageOrigin,
    "Origin whose pages may call from browsers, as in https://app.example; * for any.",
  ),
  "cors-allow-method": repeated(
    headerName,
    "Method that they may use; without any GET, POST, PUT and DELETE.",
  ),
  "cors-allow-header": repeated(
    headerName,
    "Header that they may send; without any those that the API has.",
  ),
  "cors-max-age-secs": flag(
    integer(0, 86_400),
    600,
    "Seconds for which browsers may remember what pages may do.",
  ),
  "cors-allow-credentials": flag(
    boolean,
    false,
    "Let pages send cookies and the certificate of the browser's user.",
  ),
};
