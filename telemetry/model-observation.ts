import type { LatencyHistogram } from "./latency-histogram.ts";

/** Why a request failed, as the metrics name it. */
export const failureReasons = ["REJECTED", "CANCELED", "BACKEND", "OTHER"] as const;
export type FailureReason = (typeof failureReasons)[number];

/** The spans of a successful request that the metrics tell apart; `request` is the whole. */
export const inferencePhases = [
  "request",
  "queue",
  "computeInput",
  "computeInfer",
  "computeOutput",
] as const;
export type InferencePhase = (typeof inferencePhases)[number];

/** What successful requests spent in one phase. */
export interface PhaseObservation {
  /** In all, since the first load. */
  readonly microseconds: number;
  readonly histogram: Pick<LatencyHistogram, "cumulative">;
}

/** What a cache in front of a version did. */
export interface CacheObservation {
  readonly hits: number;
  /** What their lookups took. */
  readonly hit: PhaseObservation;
  /** Requests that were looked up in vain, run and kept. */
  readonly misses: number;
  /** What lookups and insertions took. */
  readonly miss: PhaseObservation;
}

/** The state of one loaded model version as a scrape reads it: the metrics ask for it, the hot path never meets them. */
export interface ModelObservation {
  readonly name: string;
  readonly version: string;
  /** `metric_tags` of the model's config. */
  readonly tags: Readonly<Record<string, string>>;
  /** Requests answered well. */
  readonly success: number;
  readonly failures: Readonly<Record<FailureReason, number>>;
  /** Items run: a batch of 8 counts 8. */
  readonly inferenceCount: number;
  /** Batches run. */
  readonly executionCount: number;
  /** Requests that wait in the scheduler now. */
  readonly pending: number;
  readonly loadSeconds: number;
  readonly phases: Readonly<Record<InferencePhase, PhaseObservation>>;
  /** Absent for a version whose answers are not cached. */
  readonly cache?: CacheObservation;
}
