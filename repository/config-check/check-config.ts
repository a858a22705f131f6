import type { ModelConfig } from "../../protocol/model-config.ts";
import { checkBatchTensors } from "./check-batch-tensors.ts";
import { checkDynamicBatching } from "./check-dynamic-batching.ts";
import { checkEnsemble } from "./check-ensemble.ts";
import { checkSequenceBatching } from "./check-sequence-batching.ts";
import { checkTensors } from "./check-tensors.ts";
import { isEnsemble, isPlatform } from "../platforms.ts";
import { refuse, refuseFor } from "./refuse.ts";

/**
 * Checks a completed config for what no server could run; what only this server cannot run is for the pool to say.
 * @throws INVALID_ARG with the reference's texts, one mistake at a time.
 */
export function checkConfig(config: ModelConfig, modelName: string): void {
  const refuseNamed = refuseFor(modelName);
  if (config.maxBatchSize < 0) refuseNamed("'max_batch_size' must be non-negative value");
  if (isEnsemble(config)) checkEnsemble(config, modelName);
  else checkPlatform(config, modelName);
  if (config.dynamicBatching) {
    checkDynamicBatching(config.dynamicBatching, config.maxBatchSize, refuseNamed);
  }
  if (config.sequenceBatching) {
    checkSequenceBatching(config.sequenceBatching, config.maxBatchSize, modelName);
  }
  checkResponseCache(config, modelName);
  checkTensors(config, refuseNamed);
  checkBatchTensors(config, refuseNamed);
  checkInstances(config, modelName);
}

/** Refuses a config that names neither a backend nor a platform that implies one. */
export function checkPlatform(config: ModelConfig, modelName: string): void {
  const { backend, platform } = config;
  if (backend !== "") return;
  if (platform === "") refuse(`must specify 'platform' or 'backend' for '${modelName}'`);
  if (!isPlatform(platform)) refuse(`unexpected platform type '${platform}' for ${modelName}`);
}

function checkResponseCache(config: ModelConfig, modelName: string): void {
  if (!config.responseCache?.enable) return;
  const obstacle = config.sequenceBatching
    ? "sequence batching scheduler"
    : config.modelTransactionPolicy?.decoupled
      ? "'decoupled' transaction policy"
      : undefined;
  if (obstacle === undefined) return;
  refuse(
    `Response Cache does not currently support model ${modelName} with ${obstacle}. Please disable the response cache.`,
  );
}

function checkInstances(config: ModelConfig, modelName: string): void {
  for (const [i, group] of config.instanceGroup.entries()) {
    const subject = `instance group ${group.name || `${modelName}_${i}`} of model ${modelName}`;
    const needsNoGpu = group.kind === "KIND_CPU" || group.kind === "KIND_MODEL";
    if (needsNoGpu && group.gpus.length > 0) {
      refuse(`${subject} has kind ${group.kind} but specifies one or more GPUs`);
    }
    if (group.profile.length > 0 && config.backend !== "tensorrt") {
      refuse(
        `${subject} and platform ${config.platform} specifies profile field which is only supported for TensorRT models`,
      );
    }
  }
}
