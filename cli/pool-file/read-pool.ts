import {
  device,
  kubernetesName,
  mebibytes,
  pattern,
  poolName,
  scalerWord,
  seconds,
  wholeNumber,
} from "./field-type.ts";
import { coversPattern, type ModelPattern } from "../../protocol/model-pattern.ts";
import { poolDefaults, type Pool, type PoolScaler } from "./pool.ts";
import type { YamlReading, YamlValue } from "./yaml-reading.ts";

const keys = [
  "name",
  "models",
  "min-workers",
  "max-workers",
  "target-in-flight",
  "idle-seconds",
  "stable-window-seconds",
  "device",
  "memory-budget-mb",
  "concurrency",
  "scaler",
] as const;

const mostPatterns = 100;
const mostWorkers = 1000;

/** The pool that an item of the file describes, below those above it; what is wrong goes to the reading's problems. */
export function readPool(
  reading: YamlReading,
  item: YamlValue,
  above: readonly Pool[],
): Pool | undefined {
  const fields = reading.fields(item, keys);
  if (fields === undefined) return undefined;
  const { at, optional } = fields;
  const minWorkers = optional("min-workers", wholeNumber(0, mostWorkers), poolDefaults.minWorkers);
  return {
    name: readName(reading, at("name"), above),
    models: readModels(reading, at("models"), above),
    minWorkers,
    maxWorkers: readMaxWorkers(reading, at("max-workers"), minWorkers),
    targetInFlight: optional(
      "target-in-flight",
      wholeNumber(1, 100_000),
      poolDefaults.targetInFlight,
    ),
    idleMilliseconds: optional("idle-seconds", seconds(0, 86_400), poolDefaults.idleMilliseconds),
    stableWindowMilliseconds: optional(
      "stable-window-seconds",
      seconds(1, 3600),
      poolDefaults.stableWindowMilliseconds,
    ),
    device: optional("device", device, poolDefaults.device),
    memoryBudgetBytes: optional("memory-budget-mb", mebibytes, poolDefaults.memoryBudgetBytes),
    concurrency: optional("concurrency", wholeNumber(1, 1024), poolDefaults.concurrency),
    scaler: readScaler(reading, at("scaler")),
  };
}

function readName(reading: YamlReading, field: YamlValue, above: readonly Pool[]): string {
  const name = reading.required(field, poolName) ?? "";
  const other = name === "" ? -1 : above.findIndex((pool) => pool.name === name);
  if (other !== -1) reading.refuse(field, `another name than that of pools[${other}]`);
  return name;
}

function readModels(
  reading: YamlReading,
  field: YamlValue,
  above: readonly Pool[],
): readonly ModelPattern[] {
  const models = reading
    .items(field, mostPatterns, "patterns")
    .map((item) => reading.required(item, pattern))
    .filter((one) => one !== undefined);
  const taken = above.flatMap((pool) => pool.models);
  if (models.length > 0 && models.every((one) => taken.some((wide) => coversPattern(wide, one)))) {
    reading.refuse(
      field,
      "one that reaches this pool, or this pool above the others",
      "only models that pools above serve",
    );
  }
  return models;
}

function readMaxWorkers(reading: YamlReading, field: YamlValue, minWorkers: number): number {
  const most = Math.max(poolDefaults.maxWorkers, minWorkers);
  const maxWorkers = reading.optional(field, wholeNumber(1, mostWorkers), most);
  if (maxWorkers < minWorkers)
    reading.refuse(field, `min-workers, which is ${minWorkers}, or more`);
  return maxWorkers;
}

function readScaler(reading: YamlReading, field: YamlValue): PoolScaler {
  if (!reading.isMapping(field)) return reading.optional(field, scalerWord, poolDefaults.scaler);
  const fields = reading.fields(field, ["kubernetes"]);
  const names = fields && reading.fields(fields.at("kubernetes"), ["namespace", "deployment"]);
  if (names === undefined) return poolDefaults.scaler;
  return {
    kind: "kubernetes",
    namespace: reading.required(names.at("namespace"), kubernetesName) ?? "",
    deployment: reading.required(names.at("deployment"), kubernetesName) ?? "",
  };
}
