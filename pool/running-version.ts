import type { ServedModel } from "../protocol/served-model.ts";
import type { ModelConfig } from "../protocol/model-config.ts";
import type { InstanceGroup } from "./instance/model-instance.ts";
import type { ModelStatisticsRecorder } from "./model-statistics.ts";
import type { Scheduler } from "./scheduler/scheduler.ts";

/** The files of one model version on this machine's disk, and what its config said before anyone opened the model. */
export interface VersionSource {
  readonly name: string;
  readonly version: string;
  /** Parsed and with its backend known; inputs, outputs and batching may still have to be completed from the graph. */
  readonly config: ModelConfig;
  /** Folder of the model: labels, warmup data. */
  readonly modelDirectory: string;
  /** Folder of the version: the model file. */
  readonly versionDirectory: string;
}

/** A model version that is loaded and answers. */
export interface RunningVersion {
  readonly model: ServedModel;
  readonly scheduler: Scheduler;
  readonly instances: InstanceGroup;
  readonly statistics: ModelStatisticsRecorder;
  /** Answers what it has taken, then frees everything. */
  close(): Promise<void>;
}

/** Loads a version until it can answer; rejects with an InferenceError whose message becomes the index's reason. */
export type StartVersion = (source: VersionSource) => Promise<RunningVersion>;
