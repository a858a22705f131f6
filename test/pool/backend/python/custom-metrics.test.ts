import { describe, expect, it } from "vitest";
import { CustomMetrics } from "../../../../pool/backend/python/custom-metrics.ts";

describe("CustomMetrics", () => {
  it("adds up what several processes count under the same name and labels", () => {
    const metrics = new CustomMetrics();
    for (const amount of [2, 0.5]) {
      const holds = metrics.open();
      holds.openFamily(1, "requests", "how many", "counter");
      holds.openMetric(2, 1, { b: "2", a: "1" }, []);
      holds.change(2, "increment", amount);
    }
    const labels = { a: "1", b: "2" };
    expect(metrics.families()).toEqual([
      { name: "requests", help: "how many", type: "counter", samples: [{ labels, value: 2.5 }] },
    ]);
  });

  it("shows a metric as long as somebody holds it", () => {
    const metrics = new CustomMetrics();
    const holds = metrics.open();
    holds.openFamily(1, "one", "", "gauge");
    holds.openMetric(2, 1, {}, []);
    holds.closeFamily(1);
    holds.change(2, "set", 7);
    expect(metrics.families()[0]?.samples).toEqual([{ labels: {}, value: 7 }]);
    holds.closeMetric(2);
    expect(metrics.families()).toEqual([]);
  });

  it("forgets all metrics of a process that is gone", () => {
    const metrics = new CustomMetrics();
    const holds = metrics.open();
    holds.openFamily(1, "one", "", "gauge");
    holds.openMetric(2, 1, {}, []);
    holds.close();
    expect(metrics.families()).toEqual([]);
  });

  it("counts observations in the buckets of a histogram", () => {
    const metrics = new CustomMetrics();
    const holds = metrics.open();
    holds.openFamily(1, "sizes", "", "histogram");
    holds.openMetric(2, 1, {}, [1, 10]);
    for (const size of [0.5, 1, 5, 50]) holds.change(2, "observe", size);
    const samples = metrics.families()[0]?.samples ?? [];
    expect(samples.map(({ labels, part, value }) => [labels["le"] ?? part, value])).toEqual([
      ["1", 2],
      ["10", 3],
      ["+Inf", 4],
      ["sum", 56.5],
      ["count", 4],
    ]);
  });

  it("refuses names that Prometheus does not take, names of the server's own, and another kind", () => {
    const holds = new CustomMetrics().open();
    for (const name of ["a b", "", "nv_inference_count", "tidepool_x"]) {
      expect(() => holds.openFamily(1, name, "", "gauge")).toThrow("Invalid metric name");
    }
    holds.openFamily(1, "one", "", "gauge");
    expect(() => holds.openFamily(2, "one", "", "counter")).toThrow(
      "Family name already exists with different type",
    );
    expect(() => holds.openMetric(2, 1, { "a b": "" }, [])).toThrow("given the label 'a b'");
    expect(() => holds.openMetric(2, 1, {}, [2, 1])).toThrow("in ascending order");
  });
});
