import { type MetricFamily, single } from "./metric-family.ts";

/** How full a process's own part of the response cache is. */
export interface ResponseCacheObservation {
  readonly entries: number;
  readonly bytes: number;
  readonly maxBytes: number;
  readonly evictions: number;
}

/** The response cache in this process's memory, all models together, under the reference's names. */
export function responseCacheMetrics(observed: ResponseCacheObservation): readonly MetricFamily[] {
  const { entries, bytes, maxBytes, evictions } = observed;
  return [
    single("gauge", "nv_cache_util", "Cache utilization [0.0 - 1.0]", bytes / maxBytes),
    single(
      "gauge",
      "nv_cache_num_entries",
      "Number of responses stored in response cache",
      entries,
    ),
    single(
      "gauge",
      "nv_cache_num_evictions",
      "Number of cache evictions in response cache",
      evictions,
    ),
  ];
}
