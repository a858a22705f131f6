import type { MetricFamily } from "./metric-family.ts";

/** How the scaling of one pool stands. */
export interface ScalingObservation {
  readonly pool: string;
  readonly existingWorkers: number;
  readonly wantedWorkers: number;
  /** Unanswered requests; 0 while nobody has looked. */
  readonly demand: number;
  /** Decisions by their reason. */
  readonly decisions: Readonly<Record<string, number>>;
}

/** What an autoscaler sees, wants and has decided. */
export function autoscalerMetrics(pools: readonly ScalingObservation[]): readonly MetricFamily[] {
  return [
    {
      name: "tidepool_autoscaler_decisions_total",
      help: "Decisions on the size of a pool, those to leave it as it is included",
      type: "counter",
      samples: pools.flatMap(({ pool, decisions }) =>
        Object.entries(decisions).map(([reason, value]) => ({ labels: { pool, reason }, value })),
      ),
    },
    {
      name: "tidepool_autoscaler_workers",
      help: "Pool workers that are there or on their way, and those that are wanted",
      type: "gauge",
      samples: pools.flatMap(({ pool, existingWorkers, wantedWorkers }) => [
        { labels: { kind: "existing", pool }, value: existingWorkers },
        { labels: { kind: "wanted", pool }, value: wantedWorkers },
      ]),
    },
    {
      name: "tidepool_autoscaler_demand",
      help: "Requests without their last answer, as the autoscaler saw them last",
      type: "gauge",
      samples: pools.map(({ pool, demand }) => ({ labels: { pool }, value: demand })),
    },
  ];
}
