import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { errorJson } from "./error-status.ts";
import { sendJson } from "./exchange.ts";
import { isHost } from "./host-header.ts";

/** More than any proxy adds. node gives those beyond its own bound to nobody, without a word. */
const maxHeaders = 200;

/** What the path and query of a request may have. */
const maxTargetBytes = 12_288;

/** Connections that end with the answer that says why. */
const refused = new WeakSet<Socket>();

/**
 * Refuses a request with too much before its body, or with a head that a proxy in front may have read in another way,
 * and all that comes behind it on the connection; true when it did.
 */
export function refuseHead(incoming: IncomingMessage, to: ServerResponse): boolean {
  const { socket } = incoming;
  // What came together with a refused request is read before the connection ends, and may be a part of that one.
  if (refused.has(socket)) return true;
  const wrong = tooMuch(incoming) ?? wrongHost(incoming) ?? notUnderstood(incoming);
  if (!wrong) return false;
  refused.add(socket);
  const [status, text] = wrong;
  sendJson(to, status, errorJson(text), ["Connection", "close"]);
  return true;
}

type Refusal = readonly [status: number, text: string];

function tooMuch({ rawHeaders, url = "" }: IncomingMessage): Refusal | undefined {
  const headers = rawHeaders.length / 2;
  if (headers > maxHeaders)
    return [431, `request head: given ${headers} headers, expected at most ${maxHeaders}`];
  if (url.length <= maxTargetBytes) return undefined;
  const given = `given ${url.length} bytes, expected at most ${maxTargetBytes}`;
  return [414, `request target: ${given}`];
}

/** RFC 9112, 3.2: HTTP/1.0 knows requests without one. */
function wrongHost({ headersDistinct, httpVersion }: IncomingMessage): Refusal | undefined {
  const hosts = headersDistinct["host"] ?? [];
  const [host] = hosts;
  if (hosts.length > 1) return [400, `Host: given ${hosts.length} times, expected once`];
  if (host === undefined)
    return httpVersion === "1.0" ? undefined : [400, "Host: given none, expected one"];
  if (isHost(host)) return undefined;
  return [400, "Host: given what is none, expected a name or an address, and a port or none"];
}

/** node undoes the last transfer coding and passes over all others. */
function notUnderstood({ headers }: IncomingMessage): Refusal | undefined {
  const { expect, "transfer-encoding": coding } = headers;
  if (coding !== undefined && coding.toLowerCase() !== "chunked")
    return [501, "Transfer-Encoding: given another one, expected chunked"];
  if (expect !== undefined && expect.toLowerCase() !== "100-continue")
    return [417, "Expect: given another one, expected 100-continue"];
  return undefined;
}
