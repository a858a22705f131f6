import { invalidArgument } from "../../../protocol/error.ts";
import type { Labels, MetricFamily, MetricSample } from "../../../telemetry/metric-family.ts";

export type MetricKind = MetricFamily["type"];
export type MetricChange = "increment" | "set" | "observe";

const maxFamilies = 1000;
const maxSeries = 10_000;
const maxBounds = 1000;
const namePattern = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const labelPattern = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/;
/** What this server says of itself. */
const reserved = /^(?:nv|tidepool|process|nodejs)_/;

interface Family {
  readonly name: string;
  readonly help: string;
  readonly kind: MetricKind;
  readonly series: Map<string, Series>;
  users: number;
}

interface Series {
  readonly family: Family;
  readonly key: string;
  readonly labels: Labels;
  readonly bounds: readonly number[];
  /** By bucket, and last what is above all bounds. */
  readonly counts: number[];
  value: number;
  users: number;
}

/**
 * The metrics that models make for themselves. Instances that name the same metric share it, and it is there as long as
 * one of them holds it.
 */
export class CustomMetrics {
  readonly #families = new Map<string, Family>();
  #seriesCount = 0;

  /** What the metrics endpoint shows. */
  families(): readonly MetricFamily[] {
    return [...this.#families.values()].map(({ name, help, kind, series }) => ({
      name,
      help,
      type: kind,
      samples: [...series.values()].flatMap((one) => samplesOf(kind, one)),
    }));
  }

  /** One process's hold on metrics; what it has not let go of goes with it. */
  open(): MetricHolds {
    return new MetricHolds(this);
  }

  /** Throws INVALID_ARG for a name that another family has, or that no family may have. */
  holdFamily(name: string, help: string, kind: MetricKind): Family {
    let family = this.#families.get(name);
    if (family && family.kind !== kind)
      throw invalidArgument("Family name already exists with different type");
    if (!family) {
      if (!namePattern.test(name) || reserved.test(name))
        throw invalidArgument("Invalid metric name");
      if (this.#families.size >= maxFamilies)
        throw invalidArgument(`metric '${name}': there are ${maxFamilies} families already`);
      family = { name, help, kind, series: new Map(), users: 0 };
      this.#families.set(name, family);
    }
    family.users++;
    return family;
  }

  letFamilyGo(family: Family): void {
    family.users--;
    if (family.users === 0) this.#families.delete(family.name);
  }

  holdSeries(family: Family, labels: Labels, bounds: readonly number[]): Series {
    const key = seriesKey(labels);
    let series = family.series.get(key);
    if (!series) {
      this.#checkSeries(family, labels, bounds);
      const counts = Array.from({ length: bounds.length + 1 }, () => 0);
      series = { family, key, labels, bounds, counts, value: 0, users: 0 };
      family.series.set(key, series);
      this.#seriesCount++;
    }
    series.users++;
    // A family that its model has let go of stays for those that it still counts with.
    family.users++;
    return series;
  }

  letSeriesGo(series: Series): void {
    const { family, key } = series;
    series.users--;
    if (series.users === 0) {
      family.series.delete(key);
      this.#seriesCount--;
    }
    this.letFamilyGo(family);
  }

  #checkSeries({ name }: Family, labels: Labels, bounds: readonly number[]): void {
    const wrong = Object.keys(labels).find((label) => !labelPattern.test(label));
    if (wrong !== undefined)
      throw invalidArgument(
        `metric '${name}': given the label '${wrong}', expected a name that Prometheus takes`,
      );
    if (this.#seriesCount >= maxSeries)
      throw invalidArgument(`metric '${name}': there are ${maxSeries} metrics already`);
    const ascending = bounds.every((bound, i) => i === 0 || bound > (bounds[i - 1] ?? Infinity));
    if (bounds.length > maxBounds || !ascending)
      throw invalidArgument(
        `metric '${name}': expected at most ${maxBounds} buckets, in ascending order`,
      );
  }
}

/** The metrics of one process, by the numbers that it has given them. */
export class MetricHolds {
  readonly #metrics: CustomMetrics;
  readonly #families = new Map<number, Family>();
  readonly #series = new Map<number, Series>();

  constructor(metrics: CustomMetrics) {
    this.#metrics = metrics;
  }

  openFamily(number: number, name: string, help: string, kind: MetricKind): void {
    this.#families.set(number, this.#metrics.holdFamily(name, help, kind));
  }

  openMetric(number: number, family: number, labels: Labels, bounds: readonly number[]): void {
    const found = this.#families.get(family);
    if (found) this.#series.set(number, this.#metrics.holdSeries(found, labels, bounds));
  }

  change(number: number, change: MetricChange, amount: number): void {
    const series = this.#series.get(number);
    if (!series) return;
    if (change === "set") series.value = amount;
    else series.value += amount;
    if (change !== "observe") return;
    const bucket = series.bounds.findIndex((bound) => amount <= bound);
    const place = bucket < 0 ? series.bounds.length : bucket;
    series.counts[place] = (series.counts[place] ?? 0) + 1;
  }

  value(number: number): number {
    return this.#series.get(number)?.value ?? 0;
  }

  closeMetric(number: number): void {
    const series = this.#series.get(number);
    if (series) this.#metrics.letSeriesGo(series);
    this.#series.delete(number);
  }

  closeFamily(number: number): void {
    const family = this.#families.get(number);
    if (family) this.#metrics.letFamilyGo(family);
    this.#families.delete(number);
  }

  /** The process is gone. */
  close(): void {
    for (const number of this.#series.keys()) this.closeMetric(number);
    for (const number of this.#families.keys()) this.closeFamily(number);
  }
}

function seriesKey(labels: Labels): string {
  return JSON.stringify(Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function samplesOf(
  kind: MetricKind,
  { labels, bounds, counts, value }: Series,
): readonly MetricSample[] {
  if (kind !== "histogram") return [{ labels, value }];
  let total = 0;
  const buckets = counts.map((count, i): MetricSample => {
    total += count;
    const le = bounds[i] === undefined ? "+Inf" : String(bounds[i]);
    return { labels: { ...labels, le }, part: "bucket", value: total };
  });
  return [...buckets, { labels, part: "sum", value }, { labels, part: "count", value: total }];
}
