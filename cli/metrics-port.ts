import { listenMetrics } from "../gateway/metrics-server.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { MetricsRegistry } from "../telemetry/registry.ts";
import { metricsAddress } from "./check-settings.ts";
import type { Settings } from "./settings.ts";

/**
 * Serves the metrics of a process that serves nothing else, if the settings want that. Of several such processes on one
 * machine the first has the port; the others do their work without.
 *
 * @param port 0 for none
 */
export async function openMetricsPort(
  settings: Settings,
  port: number,
  registry: MetricsRegistry,
  log: Logger,
): Promise<void> {
  if (port === 0 || !settings.allowMetrics) return;
  const host = metricsAddress(settings);
  try {
    await listenMetrics({ host, port, text: () => registry.text() });
    log.info("metrics are served", { metrics: `${host}:${port}` });
  } catch (err) {
    log.warn(`metrics cannot be served on port ${port}`, { err });
  }
}
