import type { ModelRepository } from "../repository/model-repository.ts";
import type { ServingEngine } from "../serving/serving-engine.ts";
import type { ModelUploads } from "../serving/uploads/model-uploads.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Settings } from "./settings.ts";

export interface UploadsParts {
  readonly repository: ModelRepository;
  readonly engine: ServingEngine;
  readonly log: Logger;
}

/** Opens what takes versions of models from clients; undefined unless `--allow-uploads` says so. */
export async function openUploads(
  settings: Settings,
  parts: UploadsParts,
): Promise<ModelUploads | undefined> {
  if (!settings.allowUploads) return undefined;
  // Not everybody takes uploads: their code is loaded for those who do.
  const { ModelUploads } = await import("../serving/uploads/model-uploads.ts");
  const uploads = new ModelUploads({
    ...parts,
    maxBytes: settings.uploadMaxMb * 1024 * 1024,
    keptMilliseconds: settings.uploadKeepSecs * 1000,
    now: () => Date.now(),
  });
  void uploads.sweep();
  return uploads;
}
