import { describe, expect, it } from "vitest";
import { inferenceMetrics } from "../../telemetry/inference-metrics.ts";
import { defaultMetricsConfig, type MetricsConfig } from "../../telemetry/metrics-config.ts";
import { prometheusText } from "../../telemetry/prometheus-text.ts";
import { observedModel, phaseOf } from "../helpers/model-observation.ts";

function text(changes: Partial<MetricsConfig> = {}, model = observedModel()): Promise<string> {
  return prometheusText(inferenceMetrics([model], { ...defaultMetricsConfig, ...changes }));
}

const cache = { hits: 2, hit: phaseOf(8.3, 12.3), misses: 1, miss: phaseOf(90) };

function bucket(phase: string, le: string): string {
  return `nv_inference_${phase}_duration_us_bucket{le="${le}",model="text_classifier",version="1"}`;
}

describe("inferenceMetrics", () => {
  it("writes the counters as the reference writes them", async () => {
    expect(await text()).toContain(
      [
        "# HELP nv_inference_request_success Number of successful inference requests, all batch sizes",
        "# TYPE nv_inference_request_success counter",
        'nv_inference_request_success{model="text_classifier",version="1"} 3',
        "",
        "# HELP nv_inference_request_failure Number of failed inference requests, all batch sizes",
        "# TYPE nv_inference_request_failure counter",
        'nv_inference_request_failure{model="text_classifier",reason="REJECTED",version="1"} 1',
        'nv_inference_request_failure{model="text_classifier",reason="CANCELED",version="1"} 2',
        'nv_inference_request_failure{model="text_classifier",reason="BACKEND",version="1"} 0',
        'nv_inference_request_failure{model="text_classifier",reason="OTHER",version="1"} 4',
        "",
        "# HELP nv_inference_count Number of inferences performed (does not include cached requests)",
        "# TYPE nv_inference_count counter",
        'nv_inference_count{model="text_classifier",version="1"} 24',
        "",
        "# HELP nv_inference_exec_count Number of model executions performed (does not include cached requests)",
        "# TYPE nv_inference_exec_count counter",
        'nv_inference_exec_count{model="text_classifier",version="1"} 2',
        "",
        "# HELP nv_inference_request_duration_us Cumulative inference request duration in microseconds (includes cached requests)",
        "# TYPE nv_inference_request_duration_us counter",
        'nv_inference_request_duration_us{model="text_classifier",version="1"} 1350',
      ].join("\n"),
    );
  });

  it("writes cumulative buckets beside each duration", async () => {
    const lines = (await text()).split("\n");
    expect(lines).toContain(`${bucket("request", "100")} 0`);
    expect(lines).toContain(`${bucket("request", "200")} 1`);
    expect(lines).toContain(`${bucket("request", "500")} 2`);
    expect(lines).toContain(`${bucket("request", "+Inf")} 3`);
    expect(lines).toContain(`${bucket("compute_output", "50")} 3`);
  });

  it("writes how many requests wait and how long the load took", async () => {
    expect(await text()).toContain(
      'nv_inference_pending_request_count{model="text_classifier",version="1"} 5\n',
    );
    expect(await text()).toContain(
      'nv_model_load_duration_secs{model="text_classifier",version="1"} 0.25\n',
    );
  });

  it("leaves out durations without counter_latencies", async () => {
    expect(await text({ counterLatencies: false })).not.toContain("_duration_us");
    expect(await text({ counterLatencies: false })).toContain("nv_inference_count");
  });

  it("writes what a cache did, for a model that has one", async () => {
    const model = observedModel({ cache });
    const labels = '{model="text_classifier",version="1"}';
    const lines = [
      `nv_cache_num_hits_per_model${labels} 2`,
      `nv_cache_num_misses_per_model${labels} 1`,
      `nv_cache_hit_duration_per_model${labels} 21`,
      `nv_cache_miss_duration_per_model${labels} 90`,
    ];
    const written = (await text({}, model)).split("\n");
    expect(written.filter((line) => line.startsWith("nv_cache"))).toEqual(lines);
    const counts = (await text({ counterLatencies: false }, model)).split("\n");
    expect(counts.filter((line) => line.startsWith("nv_cache"))).toEqual(lines.slice(0, 2));
    expect(await text()).not.toContain("nv_cache");
  });

  it("writes summaries with summary_latencies only", async () => {
    const model = 'model="text_classifier",version="1"';
    expect(await text()).not.toContain("_summary_us");
    const summaries = await text({ summaryLatencies: true, summaryQuantiles: [0.5] });
    expect(summaries).toContain("# TYPE nv_inference_queue_summary_us gauge\n");
    expect(summaries).toContain(`nv_inference_queue_summary_us_count{${model}} 3\n`);
    expect(summaries).toContain(`nv_inference_queue_summary_us_sum{${model}} 210\n`);
    expect(summaries).toContain(`nv_inference_queue_summary_us{${model},quantile="0.5"} 75\n`);
    expect(summaries).not.toContain("nv_cache");
  });

  it("writes summaries of the cache for a model that has one", async () => {
    const config = { summaryLatencies: true, summaryQuantiles: [0.5] };
    const written = await text(config, observedModel({ cache }));
    const labels = 'model="text_classifier",version="1"';
    expect(written.split("\n").filter((line) => /^nv_cache\w+summary/u.test(line))).toEqual([
      `nv_cache_hit_summary_per_model{${labels},quantile="0.5"} 25`,
      `nv_cache_hit_summary_per_model_count{${labels}} 2`,
      `nv_cache_hit_summary_per_model_sum{${labels}} 21`,
      `nv_cache_miss_summary_per_model{${labels},quantile="0.5"} 75`,
      `nv_cache_miss_summary_per_model_count{${labels}} 1`,
      `nv_cache_miss_summary_per_model_sum{${labels}} 90`,
    ]);
  });

  it("makes labels of metric tags", async () => {
    const model = observedModel({ tags: { team: 'red "one"', "a-b": "c" } });
    expect(await text({}, model)).toContain(
      'nv_inference_count{_a_b="c",_team="red \\"one\\"",model="text_classifier",version="1"} 24\n',
    );
  });

  it("writes nothing without models", async () => {
    expect(await prometheusText(inferenceMetrics([], defaultMetricsConfig))).toBe("\n");
  });
});
