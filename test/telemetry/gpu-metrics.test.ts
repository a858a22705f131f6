import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { GpuMetrics } from "../../telemetry/gpu-metrics.ts";
import { prometheusText } from "../../telemetry/prometheus-text.ts";

const folder = mkdtempSync(path.join(tmpdir(), "tidepool-gpu-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function program(name: string, script: string): string {
  const file = path.join(folder, name);
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return file;
}

describe("GpuMetrics", () => {
  it("reads every GPU in the units of the metrics", async () => {
    const answer = "echo 'GPU-1, 25, 1024, 512, 70.5, 300'; echo 'GPU-2, 100, 2048, 0, [N/A], 300'";
    const metrics = new GpuMetrics(60_000, program("two", answer));
    await vi.waitFor(async () => expect(await prometheusText(metrics.families())).not.toBe("\n"));
    const text = await prometheusText(metrics.families());
    metrics.close();
    expect(text).toContain('nv_gpu_utilization{gpu_uuid="GPU-1"} 0.25\n');
    expect(text).toContain('nv_gpu_memory_total_bytes{gpu_uuid="GPU-2"} 2147483648\n');
    expect(text).toContain('nv_gpu_memory_used_bytes{gpu_uuid="GPU-1"} 536870912\n');
    expect(text).toContain('nv_gpu_power_usage{gpu_uuid="GPU-1"} 70.5\n');
    expect(text).not.toContain('nv_gpu_power_usage{gpu_uuid="GPU-2"}');
  });

  it("asks again after its interval", async () => {
    const counter = path.join(folder, "count");
    const script = `echo x >> ${counter}; echo "GPU-1, $(wc -l < ${counter}), 1, 1, 1, 1"`;
    const laterThanSecond = /nv_gpu_utilization\{gpu_uuid="GPU-1"\} (?:0\.0[3-9]|0\.[1-9]|[1-9])/u;
    const metrics = new GpuMetrics(10, program("again", script));
    await vi.waitFor(
      async () => expect(await prometheusText(metrics.families())).toMatch(laterThanSecond),
      5000,
    );
    metrics.close();
  });

  it("has no metrics on a machine without GPUs", async () => {
    const metrics = new GpuMetrics(10, path.join(folder, "missing"));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await prometheusText(metrics.families())).toBe("\n");
    metrics.close();
  });
});
