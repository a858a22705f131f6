import type { Parameters, ParameterValue } from "../../protocol/parameters.ts";
import { bigVarintSize, fieldSize, stringSize } from "./wire-writer.ts";
import type { WireWriter } from "./wire-writer.ts";

/** Bytes of a `map<string, InferParameter>` whose field number is below 16. */
export function parametersSize(parameters: Parameters): number {
  let size = 0;
  for (const [key, value] of parameters) size += fieldSize(entrySize(key, value));
  return size;
}

export function writeParameters(writer: WireWriter, tag: number, parameters: Parameters): void {
  for (const [key, value] of parameters) {
    writer.head(tag, entrySize(key, value));
    writer.string(0x0a, key);
    writer.head(0x12, valueSize(value));
    writeValue(writer, value);
  }
}

function entrySize(key: string, value: ParameterValue): number {
  return stringSize(key) + fieldSize(valueSize(value));
}

/** Bytes of an `InferParameter`: its one field is written even where it holds the default. */
function valueSize(value: ParameterValue): number {
  if (typeof value === "boolean") return 2;
  if (typeof value === "number") return 9;
  if (typeof value === "string") return stringSize(value);
  return 1 + bigVarintSize(value);
}

function writeValue(writer: WireWriter, value: ParameterValue): void {
  if (typeof value === "boolean") writer.head(0x08, value ? 1 : 0);
  else if (typeof value === "number") writer.double(0x21, value);
  else if (typeof value === "string") writer.string(0x1a, value);
  // int64_param as long as it fits, then uint64_param.
  else writer.bigVarint(value > 0x7fff_ffff_ffff_ffffn ? 0x28 : 0x10, value);
}
