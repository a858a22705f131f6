import type { Metadata } from "@grpc/grpc-js";
import type { Credentials } from "../../auth/authenticator.ts";
import { anonymous, Call } from "../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { CallFields } from "../call-log.ts";
import { noParameters } from "../../protocol/parameters.ts";
import type { Parameters, ParameterValue } from "../../protocol/parameters.ts";
import type { HeaderFilter } from "../header-filter.ts";

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

/** What a call's metadata shows to be let in. */
export function credentialsIn(metadata: Metadata): Credentials {
  return {
    authorization: joined(metadata, "authorization"),
    apiKey: joined(metadata, "x-api-key"),
  };
}

/** Given twice it comes joined, which is no credential. */
function joined(metadata: Metadata, name: string): string | undefined {
  const values = metadata.get(name);
  return values.length === 0 ? undefined : values.join(", ");
}

/** What a message says of itself that the log repeats. */
interface NamedMessage {
  readonly id: string;
  readonly modelName: string;
  readonly modelVersion: string;
}

/** What the log tells of a call; of one whose message could not be read, only what was called. */
export function callFields(
  method: string,
  { principal, receivedAt }: Pick<Call, "principal" | "receivedAt">,
  message?: NamedMessage,
): CallFields {
  return {
    transport: "grpc",
    method,
    requestId: message?.id,
    model: message?.modelName ?? "",
    version: message?.modelVersion ?? "",
    principal,
    receivedAt,
  };
}

/** The request headers that become parameters of the request; several with one name come joined. */
export function forwardedHeaders(
  metadata: Metadata,
  pattern: HeaderFilter | undefined,
): Parameters {
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
