import type { ModelConfig } from "../../protocol/model-config.ts";

/** True for a model that answers a request as often as it likes. */
export function isDecoupled({ modelTransactionPolicy }: ModelConfig): boolean {
  return modelTransactionPolicy?.decoupled === true;
}
