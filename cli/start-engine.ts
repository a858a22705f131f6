import { opendir } from "node:fs/promises";
import { gpuIds } from "../pool/devices.ts";
import { type LoadFailure, ModelLifecycle } from "../serving/lifecycle/model-lifecycle.ts";
import { ServingEngine } from "../serving/serving-engine.ts";
import { versionStarter } from "../pool/start-version.ts";
import { LocalStore } from "../repository/local-store.ts";
import { ModelRepository } from "../repository/model-repository.ts";
import type { Logger } from "../telemetry/logger.ts";
import { parseBackendConfig } from "./backend-config.ts";
import type { Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

export interface StartedEngine {
  readonly engine: ServingEngine;
  /** The models that should have loaded and did not. */
  readonly failures: readonly LoadFailure[];
}

/** Makes the engine that serves models in this process; resolves when it has loaded what it loads at the start. */
export async function startEngine(settings: Settings, log: Logger): Promise<StartedEngine> {
  const { defaultMaxBatchSize, warnings } = parseBackendConfig(settings.backendConfig);
  for (const warning of warnings) log.warn(warning);
  await checkFolders(settings.modelRepository);
  const stores = settings.modelRepository.map(
    (folder) => new LocalStore(folder, settings.modelConfigName),
  );
  const startVersion = versionStarter(
    {
      probe: {
        cacheDirectory: settings.localCacheDirectory,
        memoryLimitBytes: settings.probeMemoryLimitMb * 1024 * 1024,
        timeLimitMilliseconds: settings.probeTimeoutSecs * 1000,
      },
      gpuCount: (await gpuIds()).length,
      autoComplete: !settings.disableAutoCompleteConfig,
      defaultMaxBatchSize,
      splitOversizedBatches: settings.splitOversizedBatches,
    },
    log,
  );
  const lifecycle = new ModelLifecycle(
    new ModelRepository(stores),
    startVersion,
    {
      mode: settings.modelControlMode,
      pollSeconds: settings.repositoryPollSecs,
      loadModels: settings.loadModel,
      loadThreadCount: settings.modelLoadThreadCount,
    },
    log,
  );
  const engine = new ServingEngine(lifecycle, { strictReadiness: settings.strictReadiness });
  return { engine, failures: await lifecycle.start() };
}

async function checkFolders(folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    try {
      await (await opendir(folder)).close();
    } catch (cause) {
      const text = `--model-repository: given ${folder}, which cannot be read as a folder`;
      throw new UsageError(text, { cause });
    }
  }
}
