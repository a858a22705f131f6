import type { ModelConfig } from "./model-config.ts";

/** A model version that can be asked, with all that answers about it without running it. */
export interface ServedModel {
  readonly name: string;
  readonly version: string;
  /** Completed and normalised: what `/config` shows. */
  readonly config: ModelConfig;
  /** A request with more items than `maxBatchSize` is admitted, because the engine runs it in parts. */
  readonly splitOversizedBatches?: boolean;
}
