import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { noParameters } from "../../protocol/parameters.ts";
import type { Parameters } from "../../protocol/parameters.ts";
import type { HeaderFilter } from "../header-filter.ts";

/** The request parameters that come from headers: those whose name the pattern finds. */
export function forwardedHeaders(
  rawHeaders: readonly string[],
  pattern: HeaderFilter | undefined,
): Parameters {
  if (!pattern) return noParameters;
  const forwarded = new Map<string, string>();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    if (pattern.test(name)) forwarded.set(name, rawHeaders[i + 1] ?? "");
  }
  for (const name of forwarded.keys()) {
    if (name.toLowerCase().startsWith("triton_")) throw reserved(name);
  }
  return forwarded;
}

function reserved(name: string): InferenceError {
  return new InferenceError(
    StatusCode.InvalidArg,
    `Header '${name}' is reserved for Triton usage and cannot be forwarded.`,
  );
}
