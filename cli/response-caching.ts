import { MemoryTier } from "../cache/memory-tier.ts";
import type { RedisTier, RedisTierOptions } from "../cache/redis-tier.ts";
import { ResponseCache } from "../cache/response-cache.ts";
import { ResponseCaching } from "../serving/caching/response-caching.ts";
import { systemClock } from "../serving/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import { responseCacheMetrics } from "../telemetry/response-cache-metrics.ts";
import type { MetricSource } from "../telemetry/registry.ts";
import { parseCacheConfig } from "./cache-config.ts";
import type { Settings } from "./settings.ts";

/** The cache of a server that has one. */
export interface OpenCaching {
  readonly caching: ResponseCaching;
  readonly metrics: readonly MetricSource[];
}

/** Opens the response cache that the settings ask for; undefined when they ask for none. */
export async function openResponseCaching(
  settings: Settings,
  log: Logger,
): Promise<OpenCaching | undefined> {
  const config = parseCacheConfig(settings.cacheConfig, process.env);
  if (!config.memory && !config.redis) return undefined;
  const memory = config.memory && new MemoryTier(config.memory);
  const redis = config.redis && (await openRedisTier({ ...config.redis, log }));
  const cache = new ResponseCache({ memory, redis });
  return {
    // The edge Worker keeps answers of all its origins by the same digests.
    caching: new ResponseCaching(
      cache,
      systemClock,
      cache.isShared || settings.edgeSecretFile !== undefined,
    ),
    metrics: memory ? [() => responseCacheMetrics(memory.observe())] : [],
  };
}

/** Few servers have one: the client of Redis is loaded for those that do. */
async function openRedisTier(options: RedisTierOptions): Promise<RedisTier> {
  const { RedisTier } = await import("../cache/redis-tier.ts");
  return new RedisTier(options);
}
