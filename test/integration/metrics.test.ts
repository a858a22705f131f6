import { describe, expect, it } from "vitest";
import { writeEchoModels } from "../faults/echo-models.ts";
import { scrape } from "../helpers/scrape.ts";
import { serving } from "../helpers/serving.ts";

/** A request of so many rows. */
function rows(count: number): object {
  return {
    inputs: [
      {
        name: "x",
        datatype: "FP32",
        shape: [count, 4],
        data: Array.from({ length: 4 * count }, () => 1),
      },
    ],
  };
}

const phases = ["request", "queue", "compute_input", "compute_infer", "compute_output"];

describe("metrics after known requests", () => {
  const running = serving(writeEchoModels);

  it("count what was asked over both wires", async () => {
    for (const count of [1, 2, 3]) {
      expect((await running.http.infer("batch", rows(count))).status).toBe(200);
    }
    await running.grpc.infer({
      modelName: "batch",
      inputs: [{ name: "x", datatype: "FP32", shape: [4, 4] }],
      rawInputContents: [Buffer.alloc(64)],
    });
    expect((await running.http.infer("batch", rows(9))).status).toBe(400);
    const series = await scrape(running.server.metrics);
    const of = (name: string, model = "batch"): number | undefined =>
      series.get(`${name}{model="${model}",version="1"}`);

    expect(of("nv_inference_request_success")).toBe(4);
    expect(of("nv_inference_count")).toBe(10);
    expect(of("nv_inference_exec_count")).toBe(4);
    expect(of("nv_inference_pending_request_count")).toBe(0);
    expect(of("nv_inference_request_success", "list")).toBe(0);
    expect(of("nv_model_load_duration_secs")).toBeGreaterThan(0);

    for (const phase of phases) {
      const counter = `nv_inference_${phase}_duration_us`;
      const buckets = [...series]
        .filter(([name]) => name.startsWith(`${counter}_bucket{`) && name.includes('"batch"'))
        .map(([, value]) => value);
      expect(buckets.length).toBeGreaterThan(10);
      expect(buckets).toEqual(buckets.toSorted((a, b) => a - b));
      expect(buckets.at(-1)).toBe(4);
      expect(of(counter)).toBeGreaterThan(0);
    }
    const sum = (names: readonly string[]): number =>
      names.reduce((total, name) => total + (of(`nv_inference_${name}_duration_us`) ?? NaN), 0);
    // Each of the parts is rounded to whole microseconds.
    expect(sum(phases.slice(1))).toBeLessThanOrEqual(sum(["request"]) + phases.length);
  });

  it("agree with the statistics", async () => {
    const series = await scrape(running.server.metrics);
    const { text } = await running.http.get("/v2/models/batch/stats");
    const [statistics] = JSON.parse(text).model_stats;
    expect(statistics).toMatchObject({
      inference_count: series.get('nv_inference_count{model="batch",version="1"}'),
      execution_count: series.get('nv_inference_exec_count{model="batch",version="1"}'),
      inference_stats: { success: { count: 4 }, queue: { count: 4 } },
    });
    expect(statistics.batch_stats.map((one: { batch_size: number }) => one.batch_size)).toEqual([
      1, 2, 3, 4,
    ]);
  });
});
