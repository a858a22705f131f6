import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { listenMetrics, type MetricsServer } from "../../gateway/metrics-server.ts";
import { GpuMetrics } from "../../telemetry/gpu-metrics.ts";
import { inferenceMetrics } from "../../telemetry/inference-metrics.ts";
import { defaultMetricsConfig } from "../../telemetry/metrics-config.ts";
import { MetricsRegistry } from "../../telemetry/registry.ts";
import { observedModel } from "../helpers/model-observation.ts";
import { startPrometheus, type Prometheus } from "../helpers/prometheus.ts";

const folder = mkdtempSync(path.join(tmpdir(), "tidepool-metrics-"));
let gpus: GpuMetrics;
let server: MetricsServer;
let prometheus: Prometheus;

beforeAll(async () => {
  const nvidiaSmi = path.join(folder, "nvidia-smi");
  writeFileSync(nvidiaSmi, "#!/bin/sh\necho 'GPU-1, 25, 1024, 512, 70, 300'\n");
  chmodSync(nvidiaSmi, 0o755);
  gpus = new GpuMetrics(60_000, nvidiaSmi);
  const registry = new MetricsRegistry();
  registry.add(() => inferenceMetrics([observedModel()], defaultMetricsConfig));
  registry.add(() => gpus.families());
  server = await listenMetrics({ host: "127.0.0.1", port: 0, text: () => registry.text() });
  prometheus = await startPrometheus(`127.0.0.1:${server.port}`);
});

afterAll(async () => {
  await prometheus.close();
  await server.close();
  gpus.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("listenMetrics", () => {
  it("answers a scrape with the registry's text", async () => {
    const response = await fetch(`http://127.0.0.1:${server.port}/metrics`);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(await response.text()).toContain("nv_inference_count");
  });

  it("answers HEAD without a body", async () => {
    const response = await fetch(`http://127.0.0.1:${server.port}/metrics`, { method: "HEAD" });
    expect(response.status).toBe(200);
    expect(Number(response.headers.get("content-length"))).toBeGreaterThan(0);
    expect(await response.text()).toBe("");
  });

  it("refuses other methods and other paths", async () => {
    const at = `http://127.0.0.1:${server.port}`;
    expect((await fetch(`${at}/metrics`, { method: "POST" })).status).toBe(405);
    expect((await fetch(`${at}/`)).status).toBe(404);
  });

  it("answers 503 while something cannot be measured, and serves on", async () => {
    let away = true;
    const text = (): Promise<string> =>
      away ? Promise.reject(new Error("away")) : Promise.resolve("counter 1\n");
    const own = await listenMetrics({ host: "127.0.0.1", port: 0, text });
    const scrape = (): Promise<Response> => fetch(`http://127.0.0.1:${own.port}/metrics`);
    const refused = await scrape();
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    away = false;
    expect(await (await scrape()).text()).toBe("counter 1\n");
    await own.close();
  });

  it("says why it cannot listen", async () => {
    const again = listenMetrics({ host: "127.0.0.1", port: server.port, text: async () => "" });
    await expect(again).rejects.toThrow("EADDRINUSE");
  });
});

describe("Prometheus", () => {
  it.each([
    ['nv_inference_count{model="text_classifier"}', 24],
    [
      'histogram_quantile(0.95, nv_inference_compute_infer_duration_us_bucket{model="text_classifier"})',
      195,
    ],
    [
      'histogram_quantile(0.95, nv_inference_queue_duration_us_bucket{model="text_classifier"})',
      97.5,
    ],
    ["nv_gpu_utilization", 0.25],
    ["nv_gpu_memory_used_bytes", 536_870_912],
    ["sum(nv_inference_request_failure)", 7],
  ])("gives a value for %s", async (promql, value) => {
    await vi.waitFor(() => expect(gpus.families()[0]?.samples).toHaveLength(1));
    const [result] = await prometheus.query(promql);
    expect(Number(result?.value[1])).toBeCloseTo(value);
  });
});
