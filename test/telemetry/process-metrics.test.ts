import { describe, expect, it, vi } from "vitest";
import {
  CpuMetrics,
  pinnedMemoryMetrics,
  ProcessMetrics,
} from "../../telemetry/process-metrics.ts";
import type { MetricFamily } from "../../telemetry/metric-family.ts";

function valueOf(families: readonly MetricFamily[], name: string): number {
  const family = families.find((one) => one.name === name);
  return family?.samples[0]?.value ?? Number.NaN;
}

describe("CpuMetrics", () => {
  it("tells how busy the processors were", async () => {
    const metrics = new CpuMetrics(20);
    await vi.waitFor(
      () => {
        const until = performance.now() + 50;
        while (performance.now() < until);
        expect(valueOf(metrics.families(), "nv_cpu_utilization")).toBeGreaterThan(0);
      },
      { timeout: 5000 },
    );
    expect(valueOf(metrics.families(), "nv_cpu_utilization")).toBeLessThanOrEqual(1);
    metrics.close();
  });

  it("tells how much memory the machine has and uses", () => {
    const metrics = new CpuMetrics(1000);
    const total = valueOf(metrics.families(), "nv_cpu_memory_total_bytes");
    const used = valueOf(metrics.families(), "nv_cpu_memory_used_bytes");
    metrics.close();
    expect(used).toBeGreaterThan(0);
    expect(used).toBeLessThan(total);
  });
});

describe("pinnedMemoryMetrics", () => {
  it("says that there is no pool", () => {
    expect(valueOf(pinnedMemoryMetrics(), "nv_pinned_memory_pool_total_bytes")).toBe(0);
  });
});

describe("ProcessMetrics", () => {
  it("tells what this process uses, under names of its own", () => {
    const metrics = new ProcessMetrics();
    const families = metrics.families();
    metrics.close();
    expect(families.every(({ name }) => name.startsWith("tidepool_"))).toBe(true);
    expect(valueOf(families, "tidepool_process_resident_memory_bytes")).toBeGreaterThan(1e6);
    expect(valueOf(families, "tidepool_process_cpu_seconds_total")).toBeGreaterThan(0);
  });
});
