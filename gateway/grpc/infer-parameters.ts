import { cacheControlOf, cacheControlParameter } from "../../protocol/cache-control.ts";
import { type InferenceError, invalidArgument } from "../../protocol/error.ts";
import type { InferenceRequest, SequenceOptions } from "../../protocol/inference.ts";
import { noParameters } from "../../protocol/parameters.ts";
import type { Parameters, ParameterValue } from "../../protocol/parameters.ts";
import type { WireParameters } from "./request-message.ts";

/** The one parameter of the reserved prefix that a client may send: it wants an empty response after the last one. */
export const emptyFinalResponse = "triton_enable_empty_final_response";

const reservedPrefix = "triton_";

/** What a request's parameters say about the request itself, and those that are left for the model. */
export type RequestOptions = Pick<
  InferenceRequest,
  "parameters" | "priority" | "timeoutMicroseconds" | "sequence" | "cacheControl"
>;

const noOptions: RequestOptions = {
  parameters: noParameters,
  priority: 0,
  timeoutMicroseconds: 0,
};

/** Sorts out the parameters of a request; throws INVALID_ARG for one of the wrong type. Headers go to the model, too. */
export function requestOptions(
  given: WireParameters | undefined,
  headers: Parameters,
): RequestOptions {
  if (!given) return headers.size === 0 ? noOptions : { ...noOptions, parameters: headers };
  const parameters = new Map<string, ParameterValue>();
  for (const [key, value] of given) {
    if (!isOption(key)) parameters.set(key, customParameter(key, value));
  }
  for (const [key, value] of headers) parameters.set(key, value);
  flag(given, emptyFinalResponse);
  const sequence = sequenceOptions(given);
  const cacheControl = cacheControlOf(given.get(cacheControlParameter));
  if (cacheControl) parameters.delete(cacheControlParameter);
  return {
    parameters,
    priority: priorityOption(given),
    timeoutMicroseconds: timeoutOption(given),
    ...(sequence && { sequence }),
    ...(cacheControl && { cacheControl }),
  };
}

/** The classes that an output's parameters ask for, or undefined for the tensor itself. */
export function classificationOption(given: WireParameters | undefined): number | undefined {
  if (!given?.has("classification")) return undefined;
  const value = given.get("classification");
  if (typeof value !== "bigint") throw wrongType("'classification' parameter", "int64_param");
  if (value < 1n)
    throw invalidArgument("invalid value for 'classification' parameter, expected >= 0");
  return Number(value);
}

function isOption(key: string): boolean {
  switch (key) {
    case "sequence_id":
    case "sequence_start":
    case "sequence_end":
    case "priority":
    case "timeout":
    case emptyFinalResponse:
      return true;
    default:
      return false;
  }
}

function customParameter(key: string, value: ParameterValue | undefined): ParameterValue {
  if (key.startsWith(reservedPrefix)) {
    throw invalidArgument(
      "parameter keys starting with 'triton_' are reserved for Triton usage. " +
        `Only the following keys starting with 'triton_' are allowed: ${emptyFinalResponse}`,
    );
  }
  if (value === undefined) {
    throw wrongType(`'${key}' parameter`, "int64_param, bool_param, or string_param.");
  }
  return value;
}

/** A request belongs to a sequence when any of the three says so; the scheduler asks for a proper id. */
function sequenceOptions(given: WireParameters): SequenceOptions | undefined {
  const start = flag(given, "sequence_start");
  const end = flag(given, "sequence_end");
  const id = sequenceId(given);
  return id === undefined && !start && !end ? undefined : { id: id ?? 0n, start, end };
}

function sequenceId(given: WireParameters): bigint | string | undefined {
  if (!given.has("sequence_id")) return undefined;
  const id = given.get("sequence_id");
  if (typeof id === "string") return id || undefined;
  if (typeof id !== "bigint") {
    throw wrongType("'sequence_id' parameter", "int64_param or string_param.");
  }
  return BigInt.asUintN(64, id) || undefined;
}

function flag(given: WireParameters, key: string): boolean {
  if (!given.has(key)) return false;
  const value = given.get(key);
  if (typeof value !== "boolean") throw wrongType(`'${key}' parameter`, "bool_param.");
  return value;
}

function priorityOption(given: WireParameters): number {
  if (!given.has("priority")) return 0;
  const value = given.get("priority");
  if (typeof value !== "bigint") {
    throw wrongType("'priority' parameter", "int64_param or uint64_param.");
  }
  if (value < 0n) throw invalidArgument("invalid value for 'priority', expected value >= 0.");
  return Number(value);
}

/** A negative one is a very large unsigned one to the reference: no bound. */
function timeoutOption(given: WireParameters): number {
  if (!given.has("timeout")) return 0;
  const value = given.get("timeout");
  if (typeof value !== "bigint") throw wrongType("'timeout' parameter", "int64_param.");
  return value < 0n ? 0 : Number(value);
}

function wrongType(subject: string, expected: string): InferenceError {
  return invalidArgument(`invalid value type for ${subject}, expected ${expected}`);
}
