import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { ModelConfig } from "../protocol/model-config.ts";
import { frameworkOf } from "./backend/python/frameworks.ts";

type Setting = readonly [name: string, isSet: (config: ModelConfig) => boolean];

/** Settings that change what a model answers and that nothing here heeds: better no model than a wrong one. */
const unsupported: readonly Setting[] = [
  [
    "sequence_batching.iterative_sequence",
    (config) => config.sequenceBatching?.iterativeSequence === true && config.backend !== "python",
  ],
  [
    "model_transaction_policy.decoupled",
    (config) => config.modelTransactionPolicy?.decoupled === true && config.backend !== "python",
  ],
  ["input.is_shape_tensor", (config) => config.input.some((input) => input.isShapeTensor)],
  [
    "batch_input, batch_output",
    (config) => runsInFramework(config) && config.batchInput.length + config.batchOutput.length > 0,
  ],
  [
    "input.allow_ragged_batch",
    (config) => runsInFramework(config) && config.input.some((input) => input.allowRaggedBatch),
  ],
  ["model_operations", (config) => (config.modelOperations?.opLibraryFilename.length ?? 0) > 0],
  ["model_repository_agents", (config) => (config.modelRepositoryAgents?.agents.length ?? 0) > 0],
];

/** Settings that nothing here heeds yet and without which a model still answers rightly: each load tells of them. */
const withoutEffect: readonly Setting[] = [
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

/** True for a model that a framework runs: its requests become plain batches, with nothing beside them. */
function runsInFramework(config: ModelConfig): boolean {
  return frameworkOf(config) !== undefined;
}
