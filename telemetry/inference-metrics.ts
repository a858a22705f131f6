import { latencyBoundsMicroseconds } from "./latency-histogram.ts";
import { latencySummary } from "./latency-summary.ts";
import type { Labels, MetricFamily, MetricSample } from "./metric-family.ts";
import type { MetricsConfig } from "./metrics-config.ts";
import {
  type CacheObservation,
  failureReasons,
  inferencePhases,
  type InferencePhase,
  type ModelObservation,
} from "./model-observation.ts";

interface Observed {
  readonly model: ModelObservation;
  readonly labels: Labels;
}

/** The stem of each phase's metric names, and what its help says. */
const phaseNames: Readonly<Record<InferencePhase, readonly [stem: string, help: string]>> = {
  request: ["request", "inference request duration in microseconds (includes cached requests)"],
  queue: ["queue", "inference queuing duration in microseconds (includes cached requests)"],
  computeInput: [
    "compute_input",
    "compute input duration in microseconds (does not include cached requests)",
  ],
  computeInfer: [
    "compute_infer",
    "compute inference duration in microseconds (does not include cached requests)",
  ],
  computeOutput: [
    "compute_output",
    "inference compute output duration in microseconds (does not include cached requests)",
  ],
};

/** The bound of each bucket as its label says it; the last holds everything. */
const bucketLabels = [...latencyBoundsMicroseconds.map(String), "+Inf"];

/**
 * What the models did, under the names that dashboards and alerts for Triton know. Beside every duration counter stand
 * the buckets of a histogram, `<counter>_bucket`, which add up over servers: `histogram_quantile` takes them as they are.
 */
export function inferenceMetrics(
  models: Iterable<ModelObservation>,
  config: MetricsConfig,
): readonly MetricFamily[] {
  const observed = [...models].map((model) => ({ model, labels: labelsOf(model) }));
  return [
    ...requestCounters(observed),
    ...(config.counterLatencies
      ? inferencePhases.flatMap((phase) => durations(observed, phase))
      : []),
    ...cacheCounters(observed, config),
    ...gauges(observed),
    ...(config.summaryLatencies ? summaries(observed, config.summaryQuantiles) : []),
  ];
}

function labelsOf({ name, version, tags }: ModelObservation): Labels {
  const labels: [string, string][] = [
    ["model", name],
    ["version", version],
    ...Object.entries(tags).map(([tag, value]): [string, string] => [labelName(tag), value]),
  ];
  return Object.fromEntries(labels.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** A tag may have any name, a label may not; the underscore keeps tags apart from the labels that are ours. */
function labelName(tag: string): string {
  return `_${tag.replaceAll(/[^a-zA-Z0-9_]/gu, "_")}`;
}

function requestCounters(observed: readonly Observed[]): readonly MetricFamily[] {
  return [
    {
      name: "nv_inference_request_success",
      help: "Number of successful inference requests, all batch sizes",
      type: "counter",
      samples: each(observed, ({ success }) => success),
    },
    {
      name: "nv_inference_request_failure",
      help: "Number of failed inference requests, all batch sizes",
      type: "counter",
      samples: observed.flatMap(({ model, labels: { version = "", ...labels } }) =>
        failureReasons.map((reason) => ({
          labels: { ...labels, reason, version },
          value: model.failures[reason],
        })),
      ),
    },
    {
      name: "nv_inference_count",
      help: "Number of inferences performed (does not include cached requests)",
      type: "counter",
      samples: each(observed, ({ inferenceCount }) => inferenceCount),
    },
    {
      name: "nv_inference_exec_count",
      help: "Number of model executions performed (does not include cached requests)",
      type: "counter",
      samples: each(observed, ({ executionCount }) => executionCount),
    },
  ];
}

function durations(observed: readonly Observed[], phase: InferencePhase): readonly MetricFamily[] {
  const [stem, help] = phaseNames[phase];
  const name = `nv_inference_${stem}_duration_us`;
  return [
    {
      name,
      help: `Cumulative ${help}`,
      type: "counter",
      samples: each(observed, ({ phases }) => Math.round(phases[phase].microseconds)),
    },
    {
      name: `${name}_bucket`,
      help: `Number of successful requests by ${help}, up to and with the bound le`,
      type: "counter",
      samples: observed.flatMap(({ model, labels }) =>
        model.phases[phase].histogram.cumulative().map((value, bucket) => ({
          labels: { le: bucketLabels[bucket] ?? "", ...labels },
          value,
        })),
      ),
    },
  ];
}

/** Of the versions with a cache; without one there are no families either, as with the reference. */
function cacheCounters(
  observed: readonly Observed[],
  { counterLatencies }: MetricsConfig,
): readonly MetricFamily[] {
  const caches = withCache(observed);
  if (caches.length === 0) return [];
  const family = (
    name: string,
    help: string,
    value: (cache: CacheObservation) => number,
  ): MetricFamily => ({
    name,
    help,
    type: "counter",
    samples: caches.map(({ cache, labels }) => ({ labels, value: Math.round(value(cache)) })),
  });
  const counts = [
    family("nv_cache_num_hits_per_model", "Number of cache hits per model", (cache) => cache.hits),
    family(
      "nv_cache_num_misses_per_model",
      "Number of cache misses per model",
      (cache) => cache.misses,
    ),
  ];
  if (!counterLatencies) return counts;
  return [
    ...counts,
    family(
      "nv_cache_hit_duration_per_model",
      "Total cache hit duration per model, in microseconds",
      ({ hit }) => hit.microseconds,
    ),
    family(
      "nv_cache_miss_duration_per_model",
      "Total cache miss (insert+lookup) duration per model, in microseconds",
      ({ miss }) => miss.microseconds,
    ),
  ];
}

function gauges(observed: readonly Observed[]): readonly MetricFamily[] {
  return [
    {
      name: "nv_inference_pending_request_count",
      help: "Instantaneous number of pending requests awaiting execution per-model.",
      type: "gauge",
      samples: each(observed, ({ pending }) => pending),
    },
    {
      name: "nv_model_load_duration_secs",
      help: "Model load time in seconds",
      type: "gauge",
      samples: each(observed, ({ loadSeconds }) => loadSeconds),
    },
  ];
}

function withCache(
  observed: readonly Observed[],
): readonly { readonly cache: CacheObservation; readonly labels: Labels }[] {
  return observed.flatMap(({ model: { cache }, labels }) => (cache ? [{ cache, labels }] : []));
}

function summaries(
  observed: readonly Observed[],
  quantiles: readonly number[],
): readonly MetricFamily[] {
  const ofPhases = inferencePhases.flatMap((phase) => {
    const [stem, help] = phaseNames[phase];
    const summarised = observed.map(({ model, labels }) => ({
      labels,
      phase: model.phases[phase],
    }));
    return latencySummary(`nv_inference_${stem}_summary_us`, help, summarised, quantiles);
  });
  const ofCaches = (["hit", "miss"] as const).flatMap((outcome) => {
    const summarised = withCache(observed).map(({ cache, labels }) => ({
      labels,
      phase: cache[outcome],
    }));
    const help = `cache ${outcome} duration per model, in microseconds`;
    return latencySummary(`nv_cache_${outcome}_summary_per_model`, help, summarised, quantiles);
  });
  return [...ofPhases, ...ofCaches];
}

function each(
  observed: readonly Observed[],
  value: (model: ModelObservation) => number,
): readonly MetricSample[] {
  return observed.map(({ model, labels }) => ({ labels, value: value(model) }));
}
