import type {
  BatchStatistics,
  InferStatistics,
  ModelStatistics,
  ResponseStatistics,
  StatisticDuration,
} from "./statistics.ts";

interface DurationJson {
  readonly count: number;
  readonly ns: number;
}

/** Durations by their names on the wire. */
type DurationsJson = Readonly<Record<string, DurationJson>>;

export interface BatchStatisticsJson {
  readonly batch_size: number;
  readonly compute_input: DurationJson;
  readonly compute_infer: DurationJson;
  readonly compute_output: DurationJson;
}

export interface ModelStatisticsJson {
  readonly name: string;
  readonly version: string;
  readonly last_inference: number;
  readonly inference_count: number;
  readonly execution_count: number;
  readonly inference_stats: DurationsJson;
  readonly response_stats: Readonly<Record<string, DurationsJson>>;
  readonly batch_stats: readonly BatchStatisticsJson[];
  readonly memory_usage: readonly never[];
}

/** One entry of `model_stats`, in the wire's spelling. */
export function statisticsToJson(statistics: ModelStatistics): ModelStatisticsJson {
  return {
    name: statistics.name,
    version: statistics.version,
    last_inference: statistics.lastInference,
    inference_count: statistics.inferenceCount,
    execution_count: statistics.executionCount,
    inference_stats: inferStatistics(statistics.inferenceStats),
    response_stats: Object.fromEntries(
      Object.entries(statistics.responseStats).map(([index, stats]) => [
        index,
        responseStatistics(stats),
      ]),
    ),
    batch_stats: statistics.batchStats.map(batchStatistics),
    memory_usage: [],
  };
}

function duration({ count, nanoseconds }: StatisticDuration): DurationJson {
  return { count, ns: Math.round(nanoseconds) };
}

function inferStatistics(statistics: InferStatistics): DurationsJson {
  return {
    success: duration(statistics.success),
    fail: duration(statistics.fail),
    queue: duration(statistics.queue),
    compute_input: duration(statistics.computeInput),
    compute_infer: duration(statistics.computeInfer),
    compute_output: duration(statistics.computeOutput),
    cache_hit: duration(statistics.cacheHit),
    cache_miss: duration(statistics.cacheMiss),
  };
}

function responseStatistics(statistics: ResponseStatistics): DurationsJson {
  return {
    compute_infer: duration(statistics.computeInfer),
    compute_output: duration(statistics.computeOutput),
    success: duration(statistics.success),
    fail: duration(statistics.fail),
    empty_response: duration(statistics.emptyResponse),
    cancel: duration(statistics.cancel),
  };
}

function batchStatistics(statistics: BatchStatistics): BatchStatisticsJson {
  return {
    batch_size: statistics.batchSize,
    compute_input: duration(statistics.computeInput),
    compute_infer: duration(statistics.computeInfer),
    compute_output: duration(statistics.computeOutput),
  };
}
