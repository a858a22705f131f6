import { describe, expect, it } from "vitest";
import { ModelStatisticsRecorder } from "../../serving/model-statistics.ts";
import { countersOf, sumCounters, type VersionCounters } from "../../serving/version-counters.ts";

/** What a process has counted that answered so many requests from its cache; undefined for one without a cache. */
function counted(hits: number | undefined): VersionCounters {
  const recorder = new ModelStatisticsRecorder({ name: "m", version: "1", tags: {} });
  if (hits !== undefined) recorder.cacheEnabled();
  for (let i = 0; i < (hits ?? 0); i++) recorder.cacheHit(1000, 1);
  return countersOf(recorder);
}

describe("sumCounters", () => {
  it("adds up what caches did, where there are any", () => {
    const { statistics, observation } = sumCounters(counted(2), [counted(undefined), counted(3)]);
    expect(statistics.inferenceStats).toMatchObject({
      success: { count: 5 },
      cacheHit: { count: 5, nanoseconds: 5000 },
    });
    expect(observation).toMatchObject({ success: 5, cache: { hits: 5 } });
    expect(observation.cache?.hit).toMatchObject({ microseconds: 5 });
    expect(observation.cache?.hit.cumulative[0]).toBe(5);
    expect(sumCounters(counted(undefined), [counted(undefined)]).observation).not.toHaveProperty(
      "cache",
    );
  });
});
