import { Counter, Gauge, Histogram, prometheusContentType, Registry } from "prom-client";
import type { MetricFamily } from "./metric-family.ts";

export { prometheusContentType };

/** Writes metrics in Prometheus' text format, the families in the order given; those without samples are left out. */
export function prometheusText(families: Iterable<MetricFamily>): Promise<string> {
  const registry = new Registry();
  for (const family of families) if (family.samples.length > 0) register(registry, family);
  return registry.metrics();
}

function register(registry: Registry, { name, help, type, samples }: MetricFamily): void {
  const labelNames = [...new Set(samples.flatMap(({ labels }) => Object.keys(labels)))];
  const options = { name, help, labelNames, registers: [registry] };
  if (type === "counter") {
    const counter = new Counter(options);
    for (const { labels, value } of samples) counter.inc(labels, value);
  } else if (type === "histogram") {
    // Its buckets were filled elsewhere, perhaps by many processes: prom-client only writes them.
    const values = samples.map(({ labels, part, value }) => ({
      metricName: `${name}_${part}`,
      labels,
      value,
    }));
    const written = { name, help, type, values };
    Object.assign(new Histogram({ name, help, registers: [registry] }), {
      getForPromString: () => Promise.resolve(written),
    });
  } else {
    const gauge = new Gauge(options);
    for (const { labels, value } of samples) gauge.set(labels, value);
  }
}
