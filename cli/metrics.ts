import { GpuMetrics } from "../telemetry/gpu-metrics.ts";
import { inferenceMetrics } from "../telemetry/inference-metrics.ts";
import { parseMetricsConfig } from "../telemetry/metrics-config.ts";
import type { ModelObservation } from "../telemetry/model-observation.ts";
import { CpuMetrics, pinnedMemoryMetrics, ProcessMetrics } from "../telemetry/process-metrics.ts";
import { MetricsRegistry } from "../telemetry/registry.ts";
import type { Settings } from "./settings.ts";

/** Everything that is measured, as the settings want it; it lives as long as the process. */
export function metricsRegistry(
  settings: Settings,
  observations: () => Promise<Iterable<ModelObservation>>,
): MetricsRegistry {
  const config = parseMetricsConfig(settings.metricsConfig);
  const registry = new MetricsRegistry();
  registry.add(async () => inferenceMetrics(await observations(), config));
  registry.add(pinnedMemoryMetrics);
  if (settings.allowCpuMetrics) {
    const cpu = new CpuMetrics(settings.metricsIntervalMs);
    registry.add(() => cpu.families());
  }
  if (settings.allowGpuMetrics) {
    const gpus = new GpuMetrics(settings.metricsIntervalMs);
    registry.add(() => gpus.families());
  }
  const process = new ProcessMetrics();
  registry.add(() => process.families());
  return registry;
}
