import { type InferenceError, invalidArgument } from "../protocol/error.ts";
import type { Fields } from "./keda-methods.ts";
import type { PoolObservation } from "./observe.ts";

/** A pool that KEDA scales. */
export interface KedaPool {
  /** Unanswered requests that one pool worker is meant to have. */
  readonly targetInFlight: number;
}

/** What one trigger of KEDA asks about. */
export interface KedaTrigger {
  readonly pool: string;
  readonly metrics: readonly KedaMetric[];
}

/** A number that KEDA's autoscaler steers by: the total over all workers, which KEDA divides. */
export interface KedaMetric {
  readonly name: string;
  readonly target: number;
  readonly value: (observation: PoolObservation) => number;
}

/** Says what a trigger's metadata asks for; throws INVALID_ARG with what it may ask for. */
export function kedaTrigger(
  pools: ReadonlyMap<string, KedaPool>,
  metadata: Readonly<Record<string, string>>,
): KedaTrigger {
  const name = metadata["pool"] ?? "";
  const pool = pools.get(name);
  if (!pool) throw unknownName("metadata 'pool'", name, [...pools.keys()]);
  return { pool: name, metrics: [demandMetric(pool), ...oldestAgeMetric(metadata)] };
}

/** The answer to GetMetricSpec. */
export function metricSpecs({ metrics }: KedaTrigger): Fields {
  return {
    metricSpecs: metrics.map(({ name, target }) => ({
      metricName: name,
      targetSize: Math.max(1, Math.round(target)),
      targetSizeFloat: target,
    })),
  };
}

/** The answer to GetMetrics: the metric of that name, or all of them for none. */
export async function metricValues(
  { pool, metrics }: KedaTrigger,
  name: string,
  observe: (pool: string) => Promise<PoolObservation>,
): Promise<Fields> {
  const named = metrics.filter((metric) => name === "" || metric.name === name);
  if (named.length === 0)
    throw unknownName(
      `metric of pool '${pool}'`,
      name,
      metrics.map((metric) => metric.name),
    );
  const observation = await observe(pool);
  return { metricValues: named.map((metric) => metricValue(metric, observation)) };
}

function unknownName(subject: string, given: string, known: readonly string[]): InferenceError {
  const names = known.map((name) => `'${name}'`).join(", ");
  return invalidArgument(`${subject}: '${given}' is unknown, expected one of ${names}`);
}

function demandMetric({ targetInFlight }: KedaPool): KedaMetric {
  return { name: "demand", target: targetInFlight, value: ({ demand }) => demand };
}

/** Only for those who ask: an age grows by itself, so that not every pool can be steered by it. */
function oldestAgeMetric(metadata: Readonly<Record<string, string>>): readonly KedaMetric[] {
  const text = metadata["oldestAgeTargetSeconds"];
  if (text === undefined) return [];
  const target = Number(text);
  if (!(target > 0 && target < Infinity)) {
    const expected = "expected a number of seconds above 0";
    throw invalidArgument(`metadata 'oldestAgeTargetSeconds': '${text}', ${expected}`);
  }
  return [
    {
      name: "oldest_age_seconds",
      target,
      value: ({ oldestAgeMilliseconds }) => oldestAgeMilliseconds / 1000,
    },
  ];
}

function metricValue({ name, value }: KedaMetric, observation: PoolObservation): Fields {
  const metricValueFloat = value(observation);
  return { metricName: name, metricValue: Math.round(metricValueFloat), metricValueFloat };
}
