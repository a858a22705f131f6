import type { MetricFamily } from "./metric-family.ts";
import { prometheusText } from "./prometheus-text.ts";

/** Something with metrics, asked at every scrape and at no other time. */
export type MetricSource = () => Iterable<MetricFamily> | Promise<Iterable<MetricFamily>>;

/**
 * What a scrape reads. The values live where they are counted; a scrape asks for them, so that counting costs an
 * addition and nobody keeps a second copy.
 */
export class MetricsRegistry {
  readonly #sources: MetricSource[] = [];

  add(source: MetricSource): void {
    this.#sources.push(source);
  }

  /** All metrics in Prometheus' text format. */
  async text(): Promise<string> {
    const families = await Promise.all(this.#sources.map(async (source) => source()));
    return prometheusText(families.flatMap((some) => [...some]));
  }
}
