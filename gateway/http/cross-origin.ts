import type { IncomingMessage, ServerResponse } from "node:http";

/** Which pages of other origins may call from a browser (CORS). */
export interface CrossOriginRules {
  /** As in `https://app.example`; `*` for any. */
  readonly origins: readonly string[];
  readonly methods: readonly string[];
  /** Headers that they may send. */
  readonly headers: readonly string[];
  /** So long may a browser remember what it was told. */
  readonly maxAgeSeconds: number;
  /** They may send cookies and the user's certificate along. */
  readonly credentials: boolean;
}

/** Adds what a browser wants to know to an answer that has not begun; true when that is the whole answer, and sent. */
export type CrossOrigin = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean;

/** What scripts may read of an answer beside what they always may. */
const exposedHeaders = [
  "Inference-Header-Content-Length",
  "Idempotency-Replayed",
  "Location",
  "Preference-Applied",
  "RateLimit",
  "RateLimit-Policy",
  "Retry-After",
  "Server-Timing",
].join(", ");

/**
 * Tells browsers the rules. On node's own answer, because not every answer passes the router; a browser that asks first
 * (preflight) has no key to show, so it is told before any is asked for.
 */
export function crossOrigin(rules: CrossOriginRules): CrossOrigin {
  const any = rules.origins.includes("*");
  const origins = new Set(rules.origins);
  const preflight = [
    ["Access-Control-Allow-Methods", rules.methods.join(", ")],
    ["Access-Control-Allow-Headers", rules.headers.join(", ")],
    ["Access-Control-Max-Age", String(rules.maxAgeSeconds)],
  ].flat();
  return ({ method, headers }, outgoing) => {
    const { origin } = headers;
    if (!any) outgoing.setHeader("Vary", "Origin");
    if (origin === undefined || !(any || origins.has(origin))) return false;
    outgoing.setHeader("Access-Control-Allow-Origin", any ? "*" : origin);
    if (rules.credentials) outgoing.setHeader("Access-Control-Allow-Credentials", "true");
    if (method !== "OPTIONS" || headers["access-control-request-method"] === undefined) {
      outgoing.setHeader("Access-Control-Expose-Headers", exposedHeaders);
      return false;
    }
    outgoing.writeHead(204, preflight).end();
    return true;
  };
}
