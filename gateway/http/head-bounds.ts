import type { IncomingMessage, ServerResponse } from "node:http";
import { errorJson } from "./error-status.ts";
import { sendJson } from "./exchange.ts";

/** More than any proxy adds. node gives those beyond its own bound to nobody, without a word. */
const maxHeaders = 200;

/** What the path and query of a request may have. */
const maxTargetBytes = 12_288;

/** Refuses a request with too much before its body; true when it did. */
export function refuseHead({ rawHeaders, url = "" }: IncomingMessage, to: ServerResponse): boolean {
  const headers = rawHeaders.length / 2;
  if (headers > maxHeaders) {
    refuse(to, 431, `request head: given ${headers} headers, expected at most ${maxHeaders}`);
  } else if (url.length > maxTargetBytes) {
    const given = `given ${url.length} bytes, expected at most ${maxTargetBytes}`;
    refuse(to, 414, `request target: ${given}`);
  } else return false;
  return true;
}

function refuse(to: ServerResponse, status: number, text: string): void {
  sendJson(to, status, errorJson(text), ["Connection", "close"]);
}
