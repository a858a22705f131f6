import type {
  BatchStatistics,
  InferStatistics,
  ModelStatistics,
  StatisticDuration,
} from "../protocol/statistics.ts";
import {
  failureReasons,
  inferencePhases,
  type CacheObservation,
  type FailureReason,
  type InferencePhase,
  type ModelObservation,
  type PhaseObservation,
} from "../telemetry/model-observation.ts";

/** What one process has counted of a version, as plain JSON: it travels, and outlives the process. */
export interface VersionCounters {
  readonly statistics: ModelStatistics;
  readonly observation: Omit<ModelObservation, "phases" | "cache"> & {
    readonly phases: Readonly<Record<InferencePhase, PhaseCounters>>;
    readonly cache?: CacheCounters;
  };
}

interface CacheCounters extends Pick<CacheObservation, "hits" | "misses"> {
  readonly hit: PhaseCounters;
  readonly miss: PhaseCounters;
}

interface PhaseCounters {
  readonly microseconds: number;
  readonly cumulative: readonly number[];
}

/** The counters of a version in this process. */
export function countersOf(source: {
  snapshot(): ModelStatistics;
  observe(): ModelObservation;
}): VersionCounters {
  const { cache, ...observation } = source.observe();
  return {
    statistics: source.snapshot(),
    observation: {
      ...observation,
      phases: eachPhase((phase) => countersOfPhase(observation.phases[phase])),
      ...(cache && {
        cache: { ...cache, hit: countersOfPhase(cache.hit), miss: countersOfPhase(cache.miss) },
      }),
    },
  };
}

function countersOfPhase({ microseconds, histogram }: PhaseObservation): PhaseCounters {
  return { microseconds, cumulative: histogram.cumulative() };
}

/** What several processes have counted together. */
export function sumCounters(
  first: VersionCounters,
  rest: readonly VersionCounters[],
): VersionCounters {
  const statistics = sumStatistics(
    first.statistics,
    rest.map((one) => one.statistics),
  );
  const observation = sumObservations(
    first.observation,
    rest.map((one) => one.observation),
  );
  return countersOf({ snapshot: () => statistics, observe: () => observation });
}

/** The statistics of a version that several processes run: all that each of them has counted. */
export function sumStatistics(
  first: ModelStatistics,
  rest: readonly ModelStatistics[],
): ModelStatistics {
  const all = [first, ...rest];
  return {
    name: first.name,
    version: first.version,
    lastInference: Math.max(...all.map(({ lastInference }) => lastInference)),
    inferenceCount: sum(all, ({ inferenceCount }) => inferenceCount),
    executionCount: sum(all, ({ executionCount }) => executionCount),
    inferenceStats: sumInferStatistics(all.map(({ inferenceStats }) => inferenceStats)),
    batchStats: sumBatches(all.flatMap(({ batchStats }) => batchStats)),
    responseStats: {},
  };
}

/** The same for the metrics. */
export function sumObservations(
  first: VersionCounters["observation"],
  rest: readonly VersionCounters["observation"][],
): ModelObservation {
  const all = [first, ...rest];
  const caches = all.flatMap(({ cache = [] }) => cache);
  return {
    name: first.name,
    version: first.version,
    tags: Object.assign({}, ...all.map(({ tags }) => tags)),
    success: sum(all, ({ success }) => success),
    failures: sumFailures(all.map(({ failures }) => failures)),
    inferenceCount: sum(all, ({ inferenceCount }) => inferenceCount),
    executionCount: sum(all, ({ executionCount }) => executionCount),
    pending: sum(all, ({ pending }) => pending),
    loadSeconds: Math.max(...all.map(({ loadSeconds }) => loadSeconds)),
    phases: eachPhase((phase) => sumPhases(all.map(({ phases }) => phases[phase]))),
    ...(caches.length > 0 && { cache: sumCaches(caches) }),
  };
}

function sumCaches(all: readonly CacheCounters[]): CacheObservation {
  return {
    hits: sum(all, ({ hits }) => hits),
    hit: sumPhases(all.map(({ hit }) => hit)),
    misses: sum(all, ({ misses }) => misses),
    miss: sumPhases(all.map(({ miss }) => miss)),
  };
}

function sumPhases(all: readonly PhaseCounters[]): PhaseObservation {
  const buckets = all[0]?.cumulative ?? [];
  const cumulative = buckets.map((_, i) => sum(all, (one) => one.cumulative[i] ?? 0));
  const microseconds = sum(all, (one) => one.microseconds);
  return { microseconds, histogram: { cumulative: () => cumulative } };
}

function sumInferStatistics(all: readonly InferStatistics[]): InferStatistics {
  const of = (key: keyof InferStatistics): StatisticDuration =>
    sumDurations(all.map((one) => one[key]));
  return {
    success: of("success"),
    fail: of("fail"),
    queue: of("queue"),
    computeInput: of("computeInput"),
    computeInfer: of("computeInfer"),
    computeOutput: of("computeOutput"),
    cacheHit: of("cacheHit"),
    cacheMiss: of("cacheMiss"),
  };
}

function sumBatches(all: readonly BatchStatistics[]): BatchStatistics[] {
  return [...Map.groupBy(all, ({ batchSize }) => batchSize)]
    .map(([batchSize, batches]) => ({
      batchSize,
      computeInput: sumDurations(batches.map(({ computeInput }) => computeInput)),
      computeInfer: sumDurations(batches.map(({ computeInfer }) => computeInfer)),
      computeOutput: sumDurations(batches.map(({ computeOutput }) => computeOutput)),
    }))
    .toSorted((a, b) => a.batchSize - b.batchSize);
}

function sumFailures(
  all: readonly Readonly<Record<FailureReason, number>>[],
): Record<FailureReason, number> {
  const total: Record<FailureReason, number> = { REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0 };
  for (const reason of failureReasons) total[reason] = sum(all, (one) => one[reason]);
  return total;
}

function sumDurations(all: readonly StatisticDuration[]): StatisticDuration {
  return {
    count: sum(all, ({ count }) => count),
    nanoseconds: sum(all, ({ nanoseconds }) => nanoseconds),
  };
}

function sum<Item>(items: readonly Item[], value: (item: Item) => number): number {
  return items.reduce((total, item) => total + value(item), 0);
}

function eachPhase<Value>(
  value: (phase: InferencePhase) => Value,
): Readonly<Record<InferencePhase, Value>> {
  const [request, queue, computeInput, computeInfer, computeOutput] = inferencePhases;
  return {
    request: value(request),
    queue: value(queue),
    computeInput: value(computeInput),
    computeInfer: value(computeInfer),
    computeOutput: value(computeOutput),
  };
}
