import { GpuMetrics } from "../telemetry/gpu-metrics.ts";
import { inferenceMetrics } from "../telemetry/inference-metrics.ts";
import { parseMetricsConfig } from "../telemetry/metrics-config.ts";
import type { ModelObservation } from "../telemetry/model-observation.ts";
import { CpuMetrics, pinnedMemoryMetrics, ProcessMetrics } from "../telemetry/process-metrics.ts";
import { MetricsRegistry, type MetricSource } from "../telemetry/registry.ts";
import type { Settings } from "./settings.ts";

/** Everything that a server measures, as the settings want it; it lives as long as the process. */
export function metricsRegistry(
  settings: Settings,
  observations: () => Promise<Iterable<ModelObservation>>,
  more: readonly MetricSource[],
): MetricsRegistry {
  const registry = new MetricsRegistry();
  for (const source of [...baseMetrics(settings, observations), ...more]) registry.add(source);
  return registry;
}

/** What every process has that runs models or answers for them. */
export function baseMetrics(
  settings: Settings,
  observations: () => Promise<Iterable<ModelObservation>>,
): readonly MetricSource[] {
  const config = parseMetricsConfig(settings.metricsConfig);
  const sources: MetricSource[] = [
    async () => inferenceMetrics(await observations(), config),
    pinnedMemoryMetrics,
  ];
  if (settings.allowCpuMetrics) {
    const cpu = new CpuMetrics(settings.metricsIntervalMs);
    sources.push(() => cpu.families());
  }
  if (settings.allowGpuMetrics) {
    const gpus = new GpuMetrics(settings.metricsIntervalMs);
    sources.push(() => gpus.families());
  }
  return [...sources, processMetrics()];
}

/** How the process itself fares. */
export function processMetrics(): MetricSource {
  const process = new ProcessMetrics();
  return () => process.families();
}
