import type { Labels, MetricFamily, MetricSample } from "./metric-family.ts";
import {
  type CountedMetric,
  type CountedName,
  countedMetrics,
  type PoolCounts,
  readCountField,
} from "./pool-counts.ts";

/** The states in which a pool worker may be. */
const poolWorkerStates = ["starting", "ready", "draining"] as const;
export type PoolWorkerState = (typeof poolWorkerStates)[number];

/** A pool as a scrape reads it: what is there now, and what was counted since its queue exists. */
export interface QueueObservation {
  readonly pool: string;
  /** Jobs that nobody has taken. */
  readonly waitingJobs: number;
  /** Jobs that pool workers have in hand. */
  readonly activeJobs: number;
  /** Of the job that is next; 0 when none waits. */
  readonly oldestAgeSeconds: number;
  /** Unanswered requests. */
  readonly demand: number;
  readonly poolWorkers: readonly PoolWorkerState[];
  /** Loaded versions, each as often as there is a pool worker that holds it. */
  readonly residentVersions: number;
  readonly counts: PoolCounts;
}

/** Those that have one series for each pool. */
const plainCounters = [
  "queue_envelopes_total",
  "queue_retries_total",
  "queue_stalled_total",
  "model_cache_hits_total",
  "model_cache_misses_total",
  "model_cache_fetched_bytes_total",
  "model_cache_evictions_total",
] as const satisfies readonly CountedName[];

/** What the queues and pools did and do; the same at every gateway. */
export function queueMetrics(pools: readonly QueueObservation[]): readonly MetricFamily[] {
  return [
    gauge("queue_depth", "Jobs in the pool's queue", pools, (pool) => [
      sample({ pool: pool.pool, state: "waiting" }, pool.waitingJobs),
      sample({ pool: pool.pool, state: "active" }, pool.activeJobs),
    ]),
    ofPool("queue_oldest_age_seconds", "Age of the job that is next", pools, (pool) => {
      return pool.oldestAgeSeconds;
    }),
    ofPool("queue_demand", "Requests without their last answer", pools, ({ demand }) => demand),
    gauge("pool_workers", "Pool workers by their state", pools, ({ pool, poolWorkers }) =>
      poolWorkerStates.map((state) =>
        sample({ pool, state }, poolWorkers.filter((one) => one === state).length),
      ),
    ),
    ofPool("resident_versions", "Versions loaded, over all pool workers", pools, (pool) => {
      return pool.residentVersions;
    }),
    ...countedFamilies(pools),
  ];
}

function gauge(
  name: string,
  help: string,
  pools: readonly QueueObservation[],
  samples: (pool: QueueObservation) => readonly MetricSample[],
): MetricFamily {
  return { name: `tidepool_${name}`, help, type: "gauge", samples: pools.flatMap(samples) };
}

function ofPool(
  name: string,
  help: string,
  pools: readonly QueueObservation[],
  value: (pool: QueueObservation) => number,
): MetricFamily {
  return gauge(name, help, pools, (pool) => [sample({ pool: pool.pool }, value(pool))]);
}

function sample(labels: Labels, value: number): MetricSample {
  return { labels, value };
}

/** One row of a metric: a counter has the part "", a histogram its buckets by index and `sum`. */
interface Row {
  readonly labels: Labels;
  readonly parts: Map<string, number>;
}

function countedFamilies(pools: readonly QueueObservation[]): readonly MetricFamily[] {
  const rows = new Map<string, Map<string, Row>>();
  for (const { pool, counts } of pools) {
    // From the start, because Prometheus sees no increase in a series that begins with its first event.
    for (const name of plainCounters) addPart(rows, { pool, name, labels: [], part: "" }, 0);
    for (const [field, value] of counts) {
      const read = readCountField(field);
      if (read) addPart(rows, { pool, ...read }, value);
    }
  }
  return Object.entries<CountedMetric>(countedMetrics).map(([name, { help, bounds }]) => {
    const ofMetric = [...(rows.get(name)?.values() ?? [])];
    return {
      name: `tidepool_${name}`,
      help,
      type: bounds ? "histogram" : "counter",
      samples: ofMetric.flatMap(({ labels, parts }) =>
        bounds ? buckets(labels, parts, bounds) : [sample(labels, parts.get("") ?? 0)],
      ),
    };
  });
}

type PartOfRow = NonNullable<ReturnType<typeof readCountField>> & { readonly pool: string };

function addPart(
  rows: Map<string, Map<string, Row>>,
  { pool, name, labels, part }: PartOfRow,
  value: number,
): void {
  let ofMetric = rows.get(name);
  if (!ofMetric) rows.set(name, (ofMetric = new Map()));
  const key = JSON.stringify([pool, labels]);
  let row = ofMetric.get(key);
  if (!row) {
    const names: readonly string[] = countedMetrics[name].labels;
    const named = names.map((label, i) => [label, labels[i] ?? ""] as const);
    ofMetric.set(key, (row = { labels: { ...Object.fromEntries(named), pool }, parts: new Map() }));
  }
  row.parts.set(part, value);
}

function buckets(
  labels: Labels,
  parts: ReadonlyMap<string, number>,
  bounds: readonly number[],
): readonly MetricSample[] {
  let count = 0;
  const cumulative = [...bounds.map(String), "+Inf"].map((le, bucket): MetricSample => {
    count += parts.get(String(bucket)) ?? 0;
    return { part: "bucket", labels: { le, ...labels }, value: count };
  });
  return [
    ...cumulative,
    { part: "sum", labels, value: parts.get("sum") ?? 0 },
    { part: "count", labels, value: count },
  ];
}
