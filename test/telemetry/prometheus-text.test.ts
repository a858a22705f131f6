import { describe, expect, it } from "vitest";
import type { MetricFamily } from "../../telemetry/metric-family.ts";
import { prometheusText } from "../../telemetry/prometheus-text.ts";

function lines(value: number, changes: Partial<MetricFamily> = {}): Promise<string> {
  const samples = [{ labels: {}, value }];
  return prometheusText([{ name: "m", help: "h", type: "gauge", samples, ...changes }]);
}

describe("prometheusText", () => {
  it("escapes what would end a line or a label", async () => {
    const samples = [{ labels: { a: 'b"\\\n' }, value: 1 }];
    expect(await lines(0, { samples })).toContain('\nm{a="b\\"\\\\\\n"} 1\n');
    expect(await lines(0, { help: "a\nb\\" })).toContain("# HELP m a\\nb\\\\\n");
  });

  it("spells numbers as Prometheus reads them", async () => {
    expect(await lines(0.5)).toContain("\nm 0.5\n");
    expect(await lines(1e21)).toContain("\nm 1e+21\n");
    expect(await lines(Infinity)).toContain("\nm +Inf\n");
    expect(await lines(-Infinity)).toContain("\nm -Inf\n");
    expect(await lines(Number.NaN)).toContain("\nm Nan\n");
  });

  it("leaves out a family without samples", async () => {
    expect(await lines(0, { samples: [] })).not.toContain("m");
  });
});
