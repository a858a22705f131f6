import type { PoolFile } from "./pool-file/pool-file.ts";
import type { Settings } from "./settings.ts";

/** The pools of a deployment: those of its file, or one for all models. */
export async function readPools(settings: Settings): Promise<PoolFile> {
  // The YAML package is loaded by those only who have pools.
  const { defaultPoolFile, readPoolFile } = await import("./pool-file/pool-file.ts");
  if (settings.poolConfig !== undefined) return readPoolFile(settings.poolConfig);
  return defaultPoolFile({
    minWorkers: settings.poolMinWorkers,
    maxWorkers: settings.poolMaxWorkers,
    idleSeconds: settings.poolIdleSeconds,
  });
}
