import type { TensorMetadata } from "../../protocol/metadata.ts";
import type { ModelConfig } from "../../protocol/model-config.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { Device } from "../devices.ts";

/** The engine behind an instance: opens model files inside the instance's own thread. */
export interface Backend {
  /** Rejects with an InferenceError whose text becomes the reason that the load failed. */
  load(settings: InstanceSettings): Promise<LoadedModel>;
  /** Loads, and leaves in an empty folder what `savedGraph` may name for the next loads. */
  save(settings: InstanceSettings, folder: string): Promise<LoadedModel>;
}

/** Which model one instance opens, and with what. Crosses into its thread, so it is plain data. */
export interface InstanceSettings {
  readonly modelName: string;
  readonly config: ModelConfig;
  /** Folder of the version on disk. */
  readonly versionDirectory: string;
  /** Folder with the same model as the backend has optimised it: opens faster, and instances share its memory. */
  readonly savedGraph?: string;
  readonly device: Device;
  /** The instance's share of the machine's cores, for backends that start threads of their own. */
  readonly cores: number;
}

/** A model opened on one device. */
export interface LoadedModel {
  readonly inputs: readonly TensorMetadata[];
  readonly outputs: readonly TensorMetadata[];
  /**
   * Runs one batch and blocks until it is done; throws an InferenceError. The answer holds the named outputs in that
   * order. Input bytes lie aligned for their datatype and are not used after the return; output bytes are the caller's.
   */
  run(inputs: readonly Tensor[], outputs: readonly string[]): readonly Tensor[];
}
