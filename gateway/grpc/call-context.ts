import type { Metadata } from "@grpc/grpc-js";
import { anonymous, Call } from "../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { noParameters } from "../../protocol/parameters.ts";
import type { Parameters, ParameterValue } from "../../protocol/parameters.ts";

const reservedPrefix = "triton_";

/** What one call brings along beside its message. */
export function callOf(metadata: Metadata): Call {
  const [traceparent] = metadata.get("traceparent");
  return new Call(
    anonymous,
    performance.now(),
    typeof traceparent === "string" ? traceparent : undefined,
  );
}

/** The request headers that become parameters of the request; several with one name come joined. */
export function forwardedHeaders(metadata: Metadata, pattern: RegExp | undefined): Parameters {
  if (!pattern) return noParameters;
  const parameters = new Map<string, ParameterValue>();
  for (const [key, value] of Object.entries(metadata.getMap())) {
    if (!pattern.test(key)) continue;
    if (key.startsWith(reservedPrefix)) throw reservedHeader(key);
    parameters.set(key, String(value));
  }
  return parameters;
}

function reservedHeader(key: string): InferenceError {
  return new InferenceError(
    StatusCode.InvalidArg,
    `Header '${key}' is reserved for Triton usage and cannot be forwarded.`,
  );
}
