/** A metric that pool workers count together. */
export interface CountedMetric {
  readonly help: string;
  /** Beside `pool`. */
  readonly labels: readonly string[];
  /** Upper bounds of a histogram's buckets; a counter has none. */
  readonly bounds?: readonly number[];
}

/** Three a decade: a quantile read from them is off by less than half its value. */
const secondsBounds: readonly number[] = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60,
];

/** What is counted, by the metric's name without `tidepool_`. */
export const countedMetrics = {
  queue_wait_seconds: {
    help: "Time from a request's receipt by its gateway until a pool worker's scheduler had it",
    labels: ["model"],
    bounds: secondsBounds,
  },
  queue_envelopes_total: { help: "Envelopes that pool workers took from the queue", labels: [] },
  queue_requests_per_envelope: {
    help: "Requests that came in one envelope",
    labels: [],
    bounds: [1, 2, 4, 8, 16, 32, 64],
  },
  queue_retries_total: {
    help: "Requests run again, because the pool worker that had them was lost or could not run them",
    labels: [],
  },
  queue_stalled_total: { help: "Jobs found without the pool worker that had them", labels: [] },
  cold_starts_total: {
    help: "Versions that a pool worker started while requests waited for them",
    labels: ["model"],
  },
  cold_start_duration_seconds: {
    help: "Time of the first request that waited for a cold start, by the step it was spent in",
    labels: ["phase", "model"],
    bounds: secondsBounds,
  },
  model_cache_hits_total: { help: "Versions found in the local copy of models in S3", labels: [] },
  model_cache_misses_total: { help: "Versions that had to be fetched from S3", labels: [] },
  model_cache_fetched_bytes_total: { help: "Bytes fetched from S3", labels: [] },
  model_cache_evictions_total: {
    help: "Versions removed from the local copy of models in S3 to make room",
    labels: [],
  },
} as const satisfies Readonly<Record<string, CountedMetric>>;

export type CountedName = keyof typeof countedMetrics;

/**
 * Counts by field: a metric's name, the values of its labels, and for a histogram a bucket's index or `sum`. Plain numbers
 * that only grow, so that those of several processes are added up wherever they meet.
 */
export type PoolCounts = ReadonlyMap<string, number>;

/** No model's name has one. */
const separator = "\n";

export function countField(
  name: CountedName,
  labels: readonly string[],
  part: number | "sum" | "" = "",
): string {
  return [name, ...labels, part].join(separator);
}

/** The parts of a field; undefined for one that another version of this program counts. */
export function readCountField(
  field: string,
): { name: CountedName; labels: string[]; part: string } | undefined {
  const [name = "", ...labels] = field.split(separator);
  const part = labels.pop() ?? "";
  return isCounted(name) ? { name, labels, part } : undefined;
}

function isCounted(name: string): name is CountedName {
  return Object.hasOwn(countedMetrics, name);
}
