import type { ColdStartMarks } from "../protocol/cold-start.ts";
import type { ModelConfig } from "../protocol/model-config.ts";
import type { ProgressListener } from "../protocol/progress.ts";
import type { ServedModel } from "../protocol/served-model.ts";
import type { ModelStatistics } from "../protocol/statistics.ts";
import type { FetchOptions, FetchProgress, LocalVersion } from "../repository/model-store.ts";
import type { FailureReason, ModelObservation } from "../telemetry/model-observation.ts";
import type { ModelStatisticsRecorder } from "./model-statistics.ts";
import type { Scheduler } from "./scheduler.ts";

/** One model version that is to be started, and what its config said before anyone opened the model. */
export interface VersionSource {
  readonly name: string;
  readonly version: string;
  /** Parsed and with its backend known; inputs, outputs and batching may still have to be completed from the graph. */
  readonly config: ModelConfig;
  /** Equal texts: the same files. */
  readonly fingerprint: string;
  /** The files that a load request brought along, by path below the model's folder, when these are the files. */
  readonly files?: ReadonlyMap<string, Uint8Array>;
  /** The upload that its files come from, while they are in no model's folder. */
  readonly staged?: string;
  /** Of what is in the files, where the fingerprint tells only of their times and sizes. */
  readonly digest?: (() => Promise<string>) | undefined;
  /** Brings the files to this machine's disk. */
  fetch(options?: FetchOptions): Promise<LocalVersion>;
}

/** A model version that is loaded and answers, in this process or somewhere behind a queue. */
export interface RunningVersion {
  readonly model: ServedModel;
  readonly scheduler: Scheduler;
  /** False while nothing that could run it does. */
  readonly healthy: boolean;
  readonly statistics: VersionStatistics;
  /** Of an ensemble: the version that runs each step. */
  readonly members?: readonly RunningVersion[];
  /** Of one whose answers are kept: equal ones stand for the same files with the same config. */
  readonly answersDigest?: string;
  /** Of one that runs elsewhere: tells how its start there goes on; the result ends that. */
  progress?(listener: ProgressListener): () => void;
  /** Answers what it has taken, then frees everything. */
  close(): Promise<void>;
}

/** A running version whose executions are counted in this process. */
export interface CountedVersion extends RunningVersion {
  readonly statistics: ModelStatisticsRecorder;
  /** How it came up, where requests may have waited for it. */
  readonly coldStart?: ColdStartMarks;
}

/** Counts what a cache in front of a version does, which its scheduler does not see. */
export interface CacheStatistics {
  /** There is one. */
  cacheEnabled(): void;
  /** A request was answered without being run. */
  cacheHit(lookupNanoseconds: number, requestMilliseconds: number): void;
  /** A request was looked up in vain, run, and its answer kept: what the lookup and the keeping took. */
  cacheMiss(nanoseconds: number): void;
  /** A request that waited for another one's answer has failed. */
  failed(reason: FailureReason, milliseconds: number): void;
}

/** What was counted of a running version. */
export interface VersionStatistics extends CacheStatistics {
  /** For the statistics endpoint. */
  snapshot(): ModelStatistics | Promise<ModelStatistics>;
  /** For the metrics. */
  observe(): ModelObservation | Promise<ModelObservation>;
  /** The version can answer now; this is how long that took. */
  loaded(seconds: number): void;
}

/** The steps of a start that take time, in their order. */
export type StartPhase = "fetch" | "load" | "warmup";

/** Told how a start goes on, for those who wait for it. */
export interface StartListener {
  /** A step has begun, and the one before it is over. */
  onPhase(phase: StartPhase): void;
  onFetched(progress: FetchProgress): void;
}

/** Brings a version to where it can answer; rejects with an InferenceError whose message becomes the index's reason. */
export type StartVersion<Version extends RunningVersion = RunningVersion> = (
  source: VersionSource,
  listener?: StartListener,
) => Promise<Version>;
