import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { ModelConfig } from "../protocol/model-config.ts";

type Setting = readonly [name: string, isSet: (config: ModelConfig) => boolean];

/** Settings that change what a model answers and that nothing here heeds: better no model than a wrong one. */
const unsupported: readonly Setting[] = [
  [
    "sequence_batching.iterative_sequence",
    (config) => config.sequenceBatching?.iterativeSequence === true,
  ],
  [
    "model_transaction_policy.decoupled",
    (config) => config.modelTransactionPolicy?.decoupled === true,
  ],
  ["input.allow_ragged_batch", (config) => config.input.some((input) => input.allowRaggedBatch)],
  ["input.is_shape_tensor", (config) => config.input.some((input) => input.isShapeTensor)],
  ["batch_input", (config) => config.batchInput.length > 0],
  ["batch_output", (config) => config.batchOutput.length > 0],
  ["model_operations", (config) => (config.modelOperations?.opLibraryFilename.length ?? 0) > 0],
  ["model_repository_agents", (config) => (config.modelRepositoryAgents?.agents.length ?? 0) > 0],
];

/** Settings that nothing here heeds yet and without which a model still answers rightly: each load tells of them. */
const withoutEffect: readonly Setting[] = [
  [
    "dynamic_batching.priority_levels",
    (config) => (config.dynamicBatching?.priorityLevels ?? 0) > 0,
  ],
  [
    "dynamic_batching.default_queue_policy",
    (config) => config.dynamicBatching?.defaultQueuePolicy !== undefined,
  ],
  [
    "dynamic_batching.priority_queue_policy",
    (config) => Object.keys(config.dynamicBatching?.priorityQueuePolicy ?? {}).length > 0,
  ],
  ["model_warmup", (config) => config.modelWarmup.length > 0],
  ["response_cache.enable", (config) => config.responseCache?.enable === true],
  [
    "instance_group.rate_limiter",
    (config) => config.instanceGroup.some((group) => group.rateLimiter),
  ],
  [
    "instance_group.host_policy",
    (config) => config.instanceGroup.some((group) => group.hostPolicy !== ""),
  ],
  ["optimization.cuda", (config) => config.optimization?.cuda !== undefined],
  [
    "optimization.priority",
    (config) => (config.optimization?.priority ?? "PRIORITY_DEFAULT") !== "PRIORITY_DEFAULT",
  ],
  ["optimization.eager_batching", (config) => config.optimization?.eagerBatching === true],
  ["cc_model_filenames", (config) => Object.keys(config.ccModelFilenames).length > 0],
  ["model_metrics", (config) => (config.modelMetrics?.metricControl.length ?? 0) > 0],
];

/** Throws UNSUPPORTED when a config asks for something that this version of the server cannot do. */
export function checkSupported(config: ModelConfig): void {
  const found = unsupported.find(([, isSet]) => isSet(config));
  if (!found) return;
  throw new InferenceError(
    StatusCode.Unsupported,
    `model '${config.name}': '${found[0]}' is not available in this version of tidepool`,
  );
}

/** The names of those settings that a config gives and that will change nothing. */
export function settingsWithoutEffect(config: ModelConfig): readonly string[] {
  return withoutEffect.flatMap(([name, isSet]) => (isSet(config) ? [name] : []));
}
