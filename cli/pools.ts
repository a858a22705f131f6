import type { PoolFile } from "./pool-file/pool-file.ts";
import type { Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** The pools of a deployment: those of its file, or one for all models. */
export async function readPools(settings: Settings): Promise<PoolFile> {
  // The YAML package is loaded by those only who have pools.
  const { defaultPoolFile, readPoolFile } = await import("./pool-file/pool-file.ts");
  if (settings.poolConfig !== undefined) return readPoolFile(settings.poolConfig);
  const { poolMinWorkers: minWorkers, poolMaxWorkers: maxWorkers } = settings;
  if (maxWorkers < minWorkers) {
    throw new UsageError(
      `--pool-min-workers: given ${minWorkers}, expected --pool-max-workers, which is ${maxWorkers}, or less`,
    );
  }
  return defaultPoolFile({ minWorkers, maxWorkers, idleSeconds: settings.poolIdleSeconds });
}
