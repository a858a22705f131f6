import type {
  BatchStatistics,
  InferStatistics,
  ModelStatistics,
  ResponseStatistics,
} from "../../protocol/statistics.ts";

/** The fields of a `ModelStatistics` message, which calls nanoseconds `ns`. */
export function statisticsFields(statistics: ModelStatistics): object {
  const { name, version, lastInference, inferenceCount, executionCount } = statistics;
  return {
    name,
    version,
    lastInference,
    inferenceCount,
    executionCount,
    inferenceStats: durations(statistics.inferenceStats),
    batchStats: statistics.batchStats.map(batchFields),
    responseStats: mapValues(statistics.responseStats, durations),
  };
}

function batchFields({ batchSize, ...phases }: BatchStatistics): object {
  return { batchSize, ...durations(phases) };
}

function durations(
  phases: InferStatistics | ResponseStatistics | Omit<BatchStatistics, "batchSize">,
): object {
  return mapValues({ ...phases }, ({ count, nanoseconds }) => ({
    count,
    ns: nanoseconds,
  }));
}

function mapValues<Value>(
  record: Readonly<Record<string, Value>>,
  convert: (value: Value) => object,
): object {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, convert(value)]));
}
