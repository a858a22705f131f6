import type { ResidentVersions } from "../pool/resident-versions.ts";
import type { RedisConnections } from "../redis/connections.ts";
import type { ModelCacheCounters } from "../repository/model-cache.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type MetricFamily, single } from "../telemetry/metric-family.ts";
import { modelCacheMetrics } from "../telemetry/model-cache-metrics.ts";
import { type MetricSource, MetricsRegistry } from "../telemetry/registry.ts";
import { openMetricsPort } from "./metrics-port.ts";
import { baseMetrics } from "./metrics.ts";
import type { Settings } from "./settings.ts";

export interface PoolMetricsOptions {
  readonly settings: Settings;
  readonly log: Logger;
  readonly redis: RedisConnections;
  readonly poolWorker: string;
  readonly versions: ResidentVersions;
  readonly cacheCounters: Readonly<ModelCacheCounters>;
  /** What models have made for themselves, and the response cache for those whom they call. */
  readonly more: () => readonly MetricSource[];
}

/**
 * Serves what one pool worker measures of itself. Gateways show the sum over all pool workers, so here every series has the pool
 * worker's label, and those of Triton another name: nothing that adds up series meets the same request twice.
 */
export async function openPoolMetrics(options: PoolMetricsOptions): Promise<void> {
  const { settings, log, redis, poolWorker, versions, cacheCounters, more } = options;
  const registry = new MetricsRegistry();
  const base = baseMetrics(settings, async () =>
    [...versions.loaded().values()].map(({ statistics }) => statistics.observe()),
  );
  registry.add(async () => {
    const sources = [...base, ...more()];
    const families = await Promise.all(sources.map(async (source) => [...(await source())]));
    const own = [...residentMetrics(versions), ...modelCacheMetrics(cacheCounters)];
    return [...families.flat(), ...own].map((family) => ofPoolWorker(family, poolWorker));
  });
  await openMetricsPort({ settings, port: settings.poolMetricsPort, registry, redis, log });
}

function residentMetrics(versions: ResidentVersions): readonly MetricFamily[] {
  const count = versions.loaded().size;
  return [
    single("gauge", "tidepool_resident_versions", "Versions loaded", count),
    single("gauge", "tidepool_resident_bytes", "What they take of the budget", versions.bytes),
  ];
}

function ofPoolWorker(family: MetricFamily, poolWorker: string): MetricFamily {
  const name = family.name.replace(/^(?:nv|tidepool)_/u, "tidepool_pool_worker_");
  const samples = family.samples.map(({ labels, ...sample }) => ({
    ...sample,
    labels: { ...labels, pool_worker: poolWorker },
  }));
  return { ...family, name, samples };
}
