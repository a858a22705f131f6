import { maxHeaderSize, STATUS_CODES } from "node:http";
import type { ServerOptions } from "node:http";
import type { Duplex } from "node:stream";
import { currentAnswer } from "./connections.ts";
import { errorJson } from "./error-status.ts";

/** How long a request may take to arrive. */
export interface ArrivalLimits {
  /** Head and body; the head alone at most a minute. */
  readonly requestMilliseconds: number;
}

const longestHeadMilliseconds = 60_000;
const longestCheckMilliseconds = 30_000;

/** The same as settings of node's server. */
export function arrivalOptions({ requestMilliseconds }: ArrivalLimits): ServerOptions {
  return {
    requestTimeout: requestMilliseconds,
    headersTimeout: Math.min(requestMilliseconds, longestHeadMilliseconds),
    connectionsCheckingInterval: Math.min(requestMilliseconds, longestCheckMilliseconds),
  };
}

/** Answers what never became a whole request: bytes that are not HTTP, a head that is too long, a body that takes too long. */
export function refuseUnreadable(
  cause: Error,
  socket: Duplex,
  { requestMilliseconds }: ArrivalLimits,
): void {
  // An answer that is on its way must not be mixed with another one, and who does not take it would not take this one.
  const answering = currentAnswer(socket)?.headersSent || socket.writableLength > 0;
  if (!socket.writable || answering) {
    socket.destroy();
    return;
  }
  const [status, text] = refusal("code" in cause ? cause.code : undefined, requestMilliseconds);
  const body = errorJson(text);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    // A client that goes on sending would keep the connection.
    () => socket.destroy(),
  );
}

function refusal(code: unknown, requestMilliseconds: number): [status: number, text: string] {
  if (code === "HPE_HEADER_OVERFLOW") {
    return [431, `request head: given more than ${maxHeaderSize} bytes, expected at most so many`];
  }
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") {
    const seconds = requestMilliseconds / 1000;
    return [408, `the request took too long to arrive; --http-request-timeout-secs is ${seconds}`];
  }
  return [400, "the request is not valid HTTP/1.1"];
}
