import { describe, expect, it } from "vitest";
import { defaultMetricsConfig, parseMetricsConfig } from "../../telemetry/metrics-config.ts";

describe("parseMetricsConfig", () => {
  it("gives the defaults without settings", () => {
    expect(parseMetricsConfig([])).toEqual(defaultMetricsConfig);
  });

  it("reads every setting, the last of a name", () => {
    const config = parseMetricsConfig([
      "counter_latencies=true",
      "counter_latencies=false",
      "summary_latencies=true",
      "summary_quantiles=0.5:0.05,0.99:0.001",
      "histogram_latencies=true",
    ]);
    expect(config).toEqual({
      counterLatencies: false,
      summaryLatencies: true,
      summaryQuantiles: [0.5, 0.99],
    });
  });

  it.each([
    ["latencies=true", "--metrics-config: given 'latencies=true'"],
    ["counter_latencies", "--metrics-config: given 'counter_latencies='"],
    ["summary_latencies=yes", "--metrics-config: given 'summary_latencies=yes'"],
    ["summary_quantiles=1.5:0.1", "--metrics-config: given summary_quantiles '1.5:0.1'"],
    ["summary_quantiles=", "--metrics-config: given summary_quantiles ''"],
  ])("refuses %s", (setting, message) => {
    expect(() => parseMetricsConfig([setting])).toThrow(message);
  });
});
