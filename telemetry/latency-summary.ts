import { latencyBoundsMicroseconds } from "./latency-histogram.ts";
import type { Labels, MetricFamily } from "./metric-family.ts";
import type { PhaseObservation } from "./model-observation.ts";
import { quantileOf } from "./quantile.ts";

/** What one series of a summary stands on. */
export interface Summarised {
  readonly labels: Labels;
  readonly phase: PhaseObservation;
}

/** A summary's series, as families of their own: the estimates, and the count and sum that they stand on. */
export function latencySummary(
  name: string,
  help: string,
  summarised: readonly Summarised[],
  quantiles: readonly number[],
): readonly MetricFamily[] {
  if (summarised.length === 0) return [];
  return [
    {
      name,
      help: `Summary of ${help}, estimated from its buckets`,
      type: "gauge",
      samples: summarised.flatMap(({ labels, phase }) => {
        const cumulative = phase.histogram.cumulative();
        return quantiles.map((quantile) => ({
          labels: { ...labels, quantile: String(quantile) },
          value: quantileOf(quantile, latencyBoundsMicroseconds, cumulative),
        }));
      }),
    },
    {
      name: `${name}_count`,
      help: `Number of requests in the summary of ${help}`,
      type: "counter",
      samples: summarised.map(({ labels, phase }) => ({
        labels,
        value: phase.histogram.cumulative().at(-1) ?? 0,
      })),
    },
    {
      name: `${name}_sum`,
      help: `Cumulative ${help}`,
      type: "counter",
      samples: summarised.map(({ labels, phase }) => ({
        labels,
        value: Math.round(phase.microseconds),
      })),
    },
  ];
}
