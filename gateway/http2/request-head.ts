import type { IncomingHttpHeaders } from "node:http2";
import type { HeaderField } from "./hpack-tables.ts";

/** How a request begins. */
export interface RequestHead {
  /** As node gives them: a header that came twice stands joined. */
  readonly headers: IncomingHttpHeaders;
  /** Of the body, as announced; undefined where it was not. */
  readonly contentLength: number | undefined;
}

const pseudo = new Set([":method", ":scheme", ":path", ":authority"]);
const needed = [":method", ":scheme", ":path"];

/** What belongs to a connection of HTTP/1.1, by RFC 9113, section 8.2.2. */
const forbidden = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

const validName = /^:?[a-z0-9!#$%&'*+.^_`|~-]+$/u;
// Stricter than RFC 9113, section 8.2.1, but as RFC 9110, section 5.5: no control characters.
const validValue = /^[\t\u0020-\u007e\u0080-\u00ff]*$/u;

/** The request that these fields begin; undefined where they break RFC 9113, section 8.2 and 8.3. */
export function requestHead(fields: readonly HeaderField[]): RequestHead | undefined {
  const headers: Record<string, string> = Object.create(null);
  let regular = false;
  for (const { name, value } of fields) {
    const earlier = headers[name];
    const isPseudo = name.startsWith(":");
    regular ||= !isPseudo;
    if (isPseudo && (regular || earlier !== undefined || !pseudo.has(name))) return undefined;
    if (!isValid(name, value)) return undefined;
    headers[name] = earlier === undefined ? value : earlier + separator(name) + value;
  }
  return needed.every((name) => headers[name]) ? withLength(headers) : undefined;
}

function withLength(headers: IncomingHttpHeaders): RequestHead | undefined {
  const { "content-length": length } = headers;
  if (length === undefined) return { headers, contentLength: undefined };
  return /^\d{1,15}$/u.test(length) ? { headers, contentLength: Number(length) } : undefined;
}

/** True for what may stand behind a body: no field of it says anything of the request itself. */
export function areTrailers(fields: readonly HeaderField[]): boolean {
  return fields.every(({ name, value }) => !name.startsWith(":") && isValid(name, value));
}

function isValid(name: string, value: string): boolean {
  if (!validName.test(name) || !validValue.test(value) || forbidden.has(name)) return false;
  return name !== "te" || value === "trailers";
}

function separator(name: string): string {
  return name === "cookie" ? "; " : ", ";
}
