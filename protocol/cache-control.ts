import type { CacheControl, InferenceRequest } from "./inference.ts";

/** The parameter that says it in a request; HTTP has a header for it, too. */
export const cacheControlParameter = "cache_control";

/** Reads a parameter's value; any other value is a parameter of the model's own. */
export function cacheControlOf(value: unknown): CacheControl | undefined {
  return value === "no-cache" || value === "no-store" ? value : undefined;
}

/** The request with what the header `Cache-Control` says about it; directives of no meaning here are passed over. */
export function withCacheControl(
  request: InferenceRequest,
  header: string | undefined,
): InferenceRequest {
  if (header === undefined) return request;
  const directives = header.split(",").map((text) => cacheControlOf(text.trim().toLowerCase()));
  const cacheControl = directives.includes("no-store")
    ? "no-store"
    : directives.find((one) => one !== undefined);
  return cacheControl ? { ...request, cacheControl } : request;
}
