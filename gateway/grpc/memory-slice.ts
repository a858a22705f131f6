import { type InferenceError, invalidArgument } from "../../protocol/error.ts";
import type { MemorySlice } from "../../protocol/shared-memory.ts";
import type { WireParameters } from "./request-message.ts";

const regionKey = "shared_memory_region";
const offsetKey = "shared_memory_offset";
const byteSizeKey = "shared_memory_byte_size";

/** The place in shared memory that a tensor's parameters name; undefined where they name none. */
export function memorySlice(
  parameters: WireParameters | undefined,
  tensorName: string,
): MemorySlice | undefined {
  if (!parameters) return undefined;
  const tensor = `for tensor '${tensorName}'`;
  if (!parameters.has(regionKey)) {
    const alone = [byteSizeKey, offsetKey].find((key) => parameters.has(key));
    if (alone === undefined) return undefined;
    throw invalidArgument(
      `'${alone}' can not be specified without '${regionKey}' parameter ${tensor}`,
    );
  }
  const region = parameters.get(regionKey);
  if (typeof region !== "string") throw wrongType(regionKey, tensor, "string_param");
  if (!parameters.has(byteSizeKey)) {
    throw invalidArgument(
      `'${byteSizeKey}' must be specified along with '${regionKey}' parameter ${tensor}`,
    );
  }
  const offset = parameters.has(offsetKey) ? unsigned(parameters, offsetKey, tensor) : 0;
  return { region, offset, byteSize: unsigned(parameters, byteSizeKey, tensor) };
}

/** A negative one is a very large one, as to the reference. */
function unsigned(parameters: WireParameters, key: string, tensor: string): number {
  const value = parameters.get(key);
  if (typeof value !== "bigint") throw wrongType(key, tensor, "int64_param");
  return Number(BigInt.asUintN(64, value));
}

function wrongType(key: string, tensor: string, expected: string): InferenceError {
  return invalidArgument(
    `invalid value type for '${key}' parameter ${tensor}, expected ${expected}.`,
  );
}
