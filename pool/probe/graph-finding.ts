import { isDatatype } from "../../protocol/datatype.ts";
import { isJsonObject } from "../../protocol/json-access.ts";
import type { TensorMetadata } from "../../protocol/metadata.ts";

/** What opening a model file once has shown: all that can be said about the model without opening it again. */
export interface GraphFinding {
  /** As the graph declares them, with the batch dimension; -1 is variable. */
  readonly inputs: readonly TensorMetadata[];
  readonly outputs: readonly TensorMetadata[];
  /** What opening it took. */
  readonly loadMilliseconds: number;
  /** Peak resident memory of the process that opened it. */
  readonly peakBytes: number;
}

const maxTensors = 10_000;
const maxRank = 1_000;

/** The same check for what comes from a file, and from a process that has just opened what nobody trusts. */
export function isGraphFinding(value: unknown): value is GraphFinding {
  return (
    isJsonObject(value) &&
    areTensors(value["inputs"]) &&
    areTensors(value["outputs"]) &&
    Number.isFinite(value["loadMilliseconds"]) &&
    Number.isFinite(value["peakBytes"])
  );
}

function areTensors(value: unknown): boolean {
  return Array.isArray(value) && value.length <= maxTensors && value.every(isTensor);
}

function isTensor(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const { name, datatype, shape } = value;
  return (
    typeof name === "string" &&
    typeof datatype === "string" &&
    isDatatype(datatype) &&
    Array.isArray(shape) &&
    shape.length <= maxRank &&
    shape.every((dimension) => Number.isSafeInteger(dimension) && dimension >= -1)
  );
}
