import type { ModelConfig } from "../protocol/model-config.ts";
import type { ServedModel } from "../protocol/served-model.ts";
import type { StartInstance } from "./instance/instance-group.ts";

/** A model that its backend has looked into and that does not run yet. */
export interface OpenedModel {
  /** The config with what the model knows of itself and the config leaves out. */
  complete(config: ModelConfig): Promise<ModelConfig>;
  /** Throws INVALID_ARG when a completed config and the model disagree. */
  check(config: ModelConfig): void;
  /** Makes the function that starts its instances. */
  starter(model: ServedModel): StartInstance;
  /** It is closed, or will not run. */
  release(): Promise<void>;
}
