import { listenMetrics } from "../gateway/metrics-server.ts";
import type { RedisConnections } from "../redis/connections.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { MetricsRegistry } from "../telemetry/registry.ts";
import { openAccess } from "./access.ts";
import { metricsAddress } from "./check-settings.ts";
import type { Settings } from "./settings.ts";
import { openMetricsTls } from "./tls.ts";

export interface MetricsPortOptions {
  readonly settings: Settings;
  /** 0 for none. */
  readonly port: number;
  readonly registry: MetricsRegistry;
  /** Of the queues, where the keys may be. */
  readonly redis: RedisConnections;
  readonly log: Logger;
}

/**
 * Serves the metrics of a process that serves nothing else, if the settings want that, to those who may read a gateway's.
 * Of several such processes on one machine the first has the port; the others do their work without.
 */
export async function openMetricsPort(options: MetricsPortOptions): Promise<void> {
  const { settings, port, registry, redis, log } = options;
  if (port === 0 || !settings.allowMetrics) return;
  const host = metricsAddress(settings);
  try {
    const tls = await openMetricsTls(settings, log);
    const access = settings.metricsAnonymous ? undefined : await openAccess(settings, log, redis);
    const text = (): Promise<string> => registry.text();
    await listenMetrics({ host, port, text, ...(tls && { tls }), ...(access && { access }) });
    log.info("metrics are served", { metrics: `${host}:${port}` });
  } catch (err) {
    log.warn(`metrics cannot be served on port ${port}`, { err });
  }
}
