import { crossOrigin, type CrossOrigin } from "../gateway/http/cross-origin.ts";
import type { FlagType } from "./flag-type.ts";
import type { Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

const defaultMethods = ["GET", "POST", "PUT", "DELETE"];

const defaultHeaders = [
  "Accept",
  "Authorization",
  "Cache-Control",
  "Content-Digest",
  "Content-Encoding",
  "Content-Type",
  "Idempotency-Key",
  "Inference-Header-Content-Length",
  "Last-Event-ID",
  "Prefer",
  "traceparent",
  "tracestate",
  "Webhook-URL",
  "X-API-Key",
  "X-Request-ID",
];

/** An origin as browsers write it, without a path; or `*`. */
export const pageOrigin: FlagType<string> = {
  name: "origin as in https://app.example, or *",
  parse(given) {
    if (given === "*") return given;
    const whole = URL.canParse(given) && new URL(given).origin === given;
    return whole && !given.includes("*") ? given : undefined;
  },
};

/** The name of a header or a method. */
export const headerName: FlagType<string> = {
  name: "name",
  parse: (given) => (/^[\w!#$%&'*+.^`|~-]+$/u.test(given) ? given : undefined),
};

/** What the flags say about pages of other origins; undefined where none may call. */
export function crossOriginOf(settings: Settings): CrossOrigin | undefined {
  const { corsAllowOrigin: origins, corsAllowMethod, corsAllowHeader } = settings;
  if (origins.length === 0) return undefined;
  return crossOrigin({
    origins,
    methods: corsAllowMethod.length > 0 ? corsAllowMethod : defaultMethods,
    headers: corsAllowHeader.length > 0 ? corsAllowHeader : defaultHeaders,
    maxAgeSeconds: settings.corsMaxAgeSecs,
    credentials: settings.corsAllowCredentials,
  });
}

/** Throws for flags that would let any page act as the user of a browser, which browsers refuse, too. */
export function checkCrossOrigin({ corsAllowOrigin, corsAllowCredentials }: Settings): void {
  if (!corsAllowCredentials || (corsAllowOrigin.length > 0 && !corsAllowOrigin.includes("*"))) {
    return;
  }
  throw new UsageError("--cors-allow-credentials: expected --cors-allow-origin, too, and not *");
}
