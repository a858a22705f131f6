import { describe, expect, it } from "vitest";
import { countField } from "../../telemetry/pool-counts.ts";
import { prometheusText } from "../../telemetry/prometheus-text.ts";
import { queueMetrics, type QueueObservation } from "../../telemetry/queue-metrics.ts";

const idle: QueueObservation = {
  pool: "a",
  waitingJobs: 0,
  activeJobs: 0,
  oldestAgeSeconds: 0,
  demand: 0,
  poolWorkers: [],
  residentVersions: 0,
  counts: new Map(),
};

async function series(...pools: readonly QueueObservation[]): Promise<string[]> {
  return (await prometheusText(queueMetrics(pools))).split("\n");
}

describe("queueMetrics", () => {
  it("shows what is there now, pool by pool", async () => {
    const busy: QueueObservation = {
      ...idle,
      pool: "b",
      waitingJobs: 3,
      activeJobs: 2,
      oldestAgeSeconds: 1.5,
      demand: 7,
      poolWorkers: ["ready", "starting", "ready"],
      residentVersions: 4,
    };
    expect(await series(idle, busy)).toEqual(
      expect.arrayContaining([
        'tidepool_queue_depth{pool="a",state="waiting"} 0',
        'tidepool_queue_depth{pool="b",state="waiting"} 3',
        'tidepool_queue_depth{pool="b",state="active"} 2',
        'tidepool_queue_oldest_age_seconds{pool="b"} 1.5',
        'tidepool_queue_demand{pool="b"} 7',
        'tidepool_pool_workers{pool="b",state="starting"} 1',
        'tidepool_pool_workers{pool="b",state="ready"} 2',
        'tidepool_pool_workers{pool="b",state="draining"} 0',
        'tidepool_resident_versions{pool="b"} 4',
      ]),
    );
  });

  it("writes a histogram's buckets up to each bound, with sum and count", async () => {
    const counts = new Map([
      [countField("queue_requests_per_envelope", [], 0), 2],
      [countField("queue_requests_per_envelope", [], 7), 1],
      [countField("queue_requests_per_envelope", [], "sum"), 102],
    ]);
    const lines = await series({ ...idle, counts });
    const ours = lines.filter((line) => line.includes("requests_per_envelope"));
    expect(ours).toEqual([
      "# HELP tidepool_queue_requests_per_envelope Requests that came in one envelope",
      "# TYPE tidepool_queue_requests_per_envelope histogram",
      ...["1", "2", "4", "8", "16", "32", "64"].map(
        (le) => `tidepool_queue_requests_per_envelope_bucket{le="${le}",pool="a"} 2`,
      ),
      'tidepool_queue_requests_per_envelope_bucket{le="+Inf",pool="a"} 3',
      'tidepool_queue_requests_per_envelope_sum{pool="a"} 102',
      'tidepool_queue_requests_per_envelope_count{pool="a"} 3',
    ]);
  });

  it("keeps pools, models and phases apart, whatever models are called", async () => {
    const model = 'résnet "50"|x';
    const counts = new Map([
      [countField("cold_starts_total", [model]), 2],
      [countField("cold_start_duration_seconds", ["spawn", model], 3), 1],
      [countField("cold_start_duration_seconds", ["load", model], 3), 1],
    ]);
    const lines = await series({ ...idle, counts }, { ...idle, pool: "b", counts });
    const told = 'model="résnet \\"50\\"|x"';
    expect(lines).toEqual(
      expect.arrayContaining([
        `tidepool_cold_starts_total{${told},pool="a"} 2`,
        `tidepool_cold_starts_total{${told},pool="b"} 2`,
        `tidepool_cold_start_duration_seconds_count{phase="spawn",${told},pool="a"} 1`,
        `tidepool_cold_start_duration_seconds_count{phase="load",${told},pool="b"} 1`,
      ]),
    );
  });

  it("begins counters at zero, so that their first increase is seen", async () => {
    const lines = await series(idle);
    expect(lines).toEqual(
      expect.arrayContaining([
        'tidepool_queue_retries_total{pool="a"} 0',
        'tidepool_model_cache_hits_total{pool="a"} 0',
      ]),
    );
  });

  it("leaves out what another version of the program counts", async () => {
    const counts = new Map([["of_tomorrow\nmodel\n3", 1]]);
    expect((await series({ ...idle, counts })).join()).not.toContain("of_tomorrow");
  });
});
