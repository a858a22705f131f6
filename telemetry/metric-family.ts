/** A metric as Prometheus reads it: one name, one help text, and a value for each set of labels. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly samples: readonly MetricSample[];
}

export interface MetricSample {
  /** Sorted by name, as the reference prints them. */
  readonly labels: Labels;
  /** Which series of a histogram it belongs to. */
  readonly part?: "bucket" | "sum" | "count";
  readonly value: number;
}

export type Labels = Readonly<Record<string, string>>;

/** A value without labels. */
export function single(
  type: "counter" | "gauge",
  name: string,
  help: string,
  value: number,
): MetricFamily {
  return { name, help, type, samples: [{ labels: {}, value }] };
}
