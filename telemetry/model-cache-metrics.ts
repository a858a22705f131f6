import { type MetricFamily, single } from "./metric-family.ts";
import { type CountedName, countedMetrics } from "./pool-counts.ts";

/** What a process knows of the local copy of models in S3. */
export interface ModelCacheObservation {
  readonly hits: number;
  readonly misses: number;
  readonly fetchedBytes: number;
  readonly evictions: number;
  readonly residentBytes: number;
}

/** Which metric shows which counter. */
export const modelCacheCounters: readonly (readonly [
  name: CountedName,
  counter: keyof ModelCacheObservation,
])[] = [
  ["model_cache_hits_total", "hits"],
  ["model_cache_misses_total", "misses"],
  ["model_cache_fetched_bytes_total", "fetchedBytes"],
  ["model_cache_evictions_total", "evictions"],
];

/** How the local copy of models in S3 fares, as one process sees it. */
export function modelCacheMetrics(observed: ModelCacheObservation): readonly MetricFamily[] {
  return [
    ...modelCacheCounters.map(([name, counter]) =>
      single("counter", `tidepool_${name}`, countedMetrics[name].help, observed[counter]),
    ),
    single(
      "gauge",
      "tidepool_model_cache_resident_bytes",
      "Size of the local copy of models in S3, which all processes of the machine share",
      observed.residentBytes,
    ),
  ];
}
