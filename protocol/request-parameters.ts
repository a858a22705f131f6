import { cacheControlOf, cacheControlParameter } from "./cache-control.ts";
import { invalidArgument } from "./error.ts";
import type { CacheControl, SequenceOptions } from "./inference.ts";
import { asBoolean, asString, asUnsigned, member, membersOf } from "./json-access.ts";
import { demandExactNumbers } from "./json-text.ts";
import type { JsonDocument } from "./json-text.ts";
import type { Parameters, ParameterValue } from "./parameters.ts";

/** A request's `parameters`, with the protocol's own ones lifted out. */
export interface RequestParameters {
  /** All others, and the headers that the server forwards. */
  readonly parameters: Parameters;
  readonly priority: number;
  readonly timeoutMicroseconds: number;
  readonly sequence?: SequenceOptions;
  readonly cacheControl?: CacheControl;
  /** Whether outputs come as binary data when the request names none. */
  readonly binaryDataOutput: boolean;
}

/** Reads the `parameters` of a request. */
export function requestParameters(
  { root, exact }: JsonDocument,
  forwarded: Parameters,
): RequestParameters {
  const json = member(root, "parameters");
  if (json === undefined) {
    return {
      parameters: forwarded,
      priority: 0,
      timeoutMicroseconds: 0,
      binaryDataOutput: false,
    };
  }
  const lifted = new Map<string, unknown>();
  const parameters = new Map(forwarded);
  for (const [name, value] of membersOf(json, "failed to get request params.: ")) {
    if (liftedNames.has(name) || isCacheControl(name, value)) lifted.set(name, value);
    else parameters.set(name, parameterValue(name, value, exact));
  }
  const sequence = sequenceOptions(lifted, exact);
  const cacheControl = cacheControlOf(lifted.get(cacheControlParameter));
  return {
    parameters,
    priority: asUnsigned(lifted.get("priority") ?? 0, "Unable to parse 'priority': "),
    timeoutMicroseconds: asUnsigned(lifted.get("timeout") ?? 0, "Unable to parse 'timeout': "),
    ...(sequence && { sequence }),
    ...(cacheControl && { cacheControl }),
    binaryDataOutput: flag(lifted, "binary_data_output"),
  };
}

const liftedNames = new Set([
  "sequence_id",
  "sequence_start",
  "sequence_end",
  "priority",
  "timeout",
  "binary_data_output",
]);

function isCacheControl(name: string, value: unknown): boolean {
  return name === cacheControlParameter && cacheControlOf(value) !== undefined;
}

function flag(lifted: ReadonlyMap<string, unknown>, name: string): boolean {
  return asBoolean(lifted.get(name) ?? false, `Unable to parse '${name}': `);
}

function sequenceOptions(
  lifted: ReadonlyMap<string, unknown>,
  exact: boolean,
): SequenceOptions | undefined {
  const start = flag(lifted, "sequence_start");
  const end = flag(lifted, "sequence_end");
  const id = sequenceId(lifted.get("sequence_id") ?? 0, exact);
  return id || start || end ? { id, start, end } : undefined;
}

function sequenceId(value: unknown, exact: boolean): bigint | string {
  const integer = exactInteger(value, exact);
  if (integer !== undefined && integer >= 0n && integer < 2n ** 64n) return integer;
  return asString(value, "Unable to parse 'sequence_id': ");
}

/** The value of a custom parameter; throws the reference's text for a reserved name or a type that none can have. */
export function parameterValue(name: string, value: unknown, exact: boolean): ParameterValue {
  if (name.startsWith("triton_")) {
    throw invalidArgument(
      "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
    );
  }
  const integer = exactInteger(value, exact);
  if (integer !== undefined) return integer;
  if (typeof value === "string" || typeof value === "boolean" || typeof value === "number") {
    return value;
  }
  throw invalidArgument(
    `parameter '${name}' has invalid type. It should be either 'int', 'bool', or 'string'.`,
  );
}

function exactInteger(value: unknown, exact: boolean): bigint | undefined {
  if (typeof value === "bigint") return value;
  if (typeof value !== "number" || !Number.isInteger(value)) return undefined;
  if (Number.isSafeInteger(value)) return BigInt(value);
  return exact ? undefined : demandExactNumbers();
}
