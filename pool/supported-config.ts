import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { ModelConfig } from "../protocol/model-config.ts";

/** Settings that would change what a model answers and that nothing here heeds: better no model than a wrong one. */
const unsupported: readonly (readonly [
  setting: string,
  asksFor: (config: ModelConfig) => boolean,
])[] = [
  ["ensemble_scheduling", (config) => config.ensembleScheduling !== undefined],
  ["sequence_batching", (config) => config.sequenceBatching !== undefined],
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

/** Throws UNSUPPORTED when a config asks for something that this version of the server cannot do. */
export function checkSupported(config: ModelConfig): void {
  const found = unsupported.find(([, asksFor]) => asksFor(config));
  if (!found) return;
  throw new InferenceError(
    StatusCode.Unsupported,
    `model '${config.name}': '${found[0]}' is not available in this version of tidepool`,
  );
}
