import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { ModelConfig } from "../../protocol/model-config.ts";
import { checkConfig } from "../../repository/config-check/check-config.ts";

/** Checks what the config of an ensemble says by itself, before anything is known of the models that it is composed of. */
export function checkEnsembleConfig(config: ModelConfig): void {
  checkConfig(config, config.name);
  if (!config.modelTransactionPolicy?.decoupled) return;
  throw new InferenceError(
    StatusCode.Unsupported,
    `model '${config.name}': 'model_transaction_policy.decoupled' is not available in this version of tidepool`,
  );
}
