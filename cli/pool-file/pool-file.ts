import { matchesPattern, modelPattern } from "../../protocol/model-pattern.ts";
import { poolDefaults, type Pool } from "./pool.ts";
import { readPool } from "./read-pool.ts";
import { readText } from "./read-text.ts";
import { YamlReading } from "./yaml-reading.ts";

/** The pools of a deployment, in the order in which they are asked for a model. */
export interface PoolFile {
  readonly pools: readonly Pool[];
}

const mostPools = 64;

/** The pools that a deployment's `tidepool.yaml` names; throws a UsageError that lists all that is wrong with it. */
export async function readPoolFile(path: string): Promise<PoolFile> {
  return parsePoolFile(await readText(path, "pools"), path);
}

/** The pools that the text of a file names; throws a UsageError with all its mistakes, each with file and line. */
export function parsePoolFile(text: string, fileName: string): PoolFile {
  const reading = new YamlReading(text, fileName);
  const fields = reading.fields(reading.root, ["pools"]);
  const pools: Pool[] = [];
  for (const item of fields ? reading.items(fields.at("pools"), mostPools, "pools") : []) {
    const pool = readPool(reading, item, pools);
    if (pool) pools.push(pool);
  }
  reading.throwProblems();
  return { pools };
}

/** One pool that serves all models, for a deployment without a file. */
export function defaultPoolFile(options: {
  readonly minWorkers: number;
  readonly maxWorkers: number;
  readonly idleSeconds: number;
}): PoolFile {
  const { minWorkers, maxWorkers, idleSeconds } = options;
  const pool: Pool = {
    ...poolDefaults,
    name: "default",
    models: [modelPattern("*")],
    minWorkers,
    maxWorkers,
    idleMilliseconds: idleSeconds * 1000,
  };
  return { pools: [pool] };
}

/** The first pool with a pattern for a model; undefined where no pool serves it. */
export function poolOf({ pools }: PoolFile, modelName: string): Pool | undefined {
  return pools.find(({ models }) => models.some((one) => matchesPattern(one, modelName)));
}
