import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { admissionMetrics } from "../../telemetry/admission-metrics.ts";
import { autoscalerMetrics } from "../../telemetry/autoscaler-metrics.ts";
import { modelCacheMetrics } from "../../telemetry/model-cache-metrics.ts";
import { queueMetrics } from "../../telemetry/queue-metrics.ts";
import { webhookMetrics } from "../../telemetry/webhook-metrics.ts";

const nothing = { hits: 0, misses: 0, fetchedBytes: 0, evictions: 0, residentBytes: 0 };

describe("docs/metrics.md", () => {
  const page = readFileSync(path.resolve(import.meta.dirname, "../../docs/metrics.md"), "utf8");
  const families = [
    ...queueMetrics([]),
    ...admissionMetrics({ requests: 0, bytes: 0, refusals: [] }),
    ...autoscalerMetrics([]),
    ...modelCacheMetrics(nothing),
    ...webhookMetrics({ undelivered: 0, since: undefined, attempts: {} }, 0),
  ];

  it("explains every metric of servers, queues, pools, caches and the autoscaler", () => {
    const names = families.map(({ name }) => name);
    expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });

  it("explains no metric that is not there", () => {
    const named = [...page.matchAll(/^\| `(?<name>tidepool_\w+)`/gmu)].map(([, name]) => name);
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((name) => !families.some((family) => family.name === name))).toEqual([]);
  });
});
