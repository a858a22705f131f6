/** How often something happened, and the nanoseconds it took in all. */
export interface StatisticDuration {
  count: number;
  nanoseconds: number;
}

/** The phases every request passes; `success` and `fail` are whole requests. */
export interface InferStatistics {
  success: StatisticDuration;
  fail: StatisticDuration;
  queue: StatisticDuration;
  computeInput: StatisticDuration;
  computeInfer: StatisticDuration;
  computeOutput: StatisticDuration;
  cacheHit: StatisticDuration;
  cacheMiss: StatisticDuration;
}

/** What executions of one batch size took. */
export interface BatchStatistics {
  batchSize: number;
  computeInput: StatisticDuration;
  computeInfer: StatisticDuration;
  computeOutput: StatisticDuration;
}

/** What the n-th responses of a decoupled model took. */
export interface ResponseStatistics {
  computeInfer: StatisticDuration;
  computeOutput: StatisticDuration;
  success: StatisticDuration;
  fail: StatisticDuration;
  emptyResponse: StatisticDuration;
  cancel: StatisticDuration;
}

/** The statistics of one model version since it was first loaded. */
export interface ModelStatistics {
  readonly name: string;
  readonly version: string;
  /** Milliseconds since the epoch; 0 before the first request. */
  lastInference: number;
  /** Items run: a batch of 8 counts 8. */
  inferenceCount: number;
  /** Batches run. */
  executionCount: number;
  readonly inferenceStats: InferStatistics;
  /** Ascending by batch size. */
  readonly batchStats: readonly BatchStatistics[];
  /** By response index, decoupled models only. */
  readonly responseStats: Readonly<Record<string, ResponseStatistics>>;
}
