import { describe, expect, it } from "vitest";
import { autoscalerMetrics } from "../../telemetry/autoscaler-metrics.ts";
import { prometheusText } from "../../telemetry/prometheus-text.ts";

describe("autoscalerMetrics", () => {
  it("shows decisions by reason, and the workers that are beside those that are wanted", async () => {
    const decisions = { from_zero: 2, hold: 40 };
    const pool = { pool: "a", existingWorkers: 1, wantedWorkers: 3, demand: 9, decisions };
    expect((await prometheusText(autoscalerMetrics([pool]))).split("\n")).toEqual(
      expect.arrayContaining([
        'tidepool_autoscaler_decisions_total{pool="a",reason="from_zero"} 2',
        'tidepool_autoscaler_decisions_total{pool="a",reason="hold"} 40',
        'tidepool_autoscaler_workers{kind="existing",pool="a"} 1',
        'tidepool_autoscaler_workers{kind="wanted",pool="a"} 3',
        'tidepool_autoscaler_demand{pool="a"} 9',
      ]),
    );
  });
});
