import { describe, expect, it } from "vitest";
import { ModelStatisticsRecorder } from "../../serving/model-statistics.ts";
import { pendingRequest, requestFor } from "../helpers/requests.ts";
import { modelInput, servedModel } from "../helpers/served-model.ts";

const model = servedModel("m", { maxBatchSize: 8, input: [modelInput("IN", "TYPE_FP32", [4])] });
const timings = {
  computeInputNanoseconds: 1_000_000,
  computeInferNanoseconds: 5_000_000,
  computeOutputNanoseconds: 2_000_000,
};

function recorder(): ModelStatisticsRecorder {
  return new ModelStatisticsRecorder({ name: "m", version: "1", tags: { team: "blue" } });
}

function batch(...sizes: number[]) {
  return sizes.map((size, i) => pendingRequest(requestFor(model, [size, 4]), 100 + i));
}

describe("ModelStatisticsRecorder", () => {
  it("counts requests, items and executions apart", () => {
    const statistics = recorder();
    statistics.executed(batch(2, 3), timings, 120);
    expect(statistics.snapshot()).toMatchObject({ inferenceCount: 5, executionCount: 1 });
    expect(statistics.snapshot().inferenceStats.success.count).toBe(2);
  });

  it("gives every request of a batch the whole time of its execution", () => {
    const statistics = recorder();
    statistics.executed(batch(2, 3), timings, 120);
    expect(statistics.snapshot().inferenceStats).toMatchObject({
      success: { count: 2, nanoseconds: 39_000_000 },
      queue: { count: 2, nanoseconds: 23_000_000 },
      computeInput: { count: 2, nanoseconds: 2_000_000 },
      computeInfer: { count: 2, nanoseconds: 10_000_000 },
      computeOutput: { count: 2, nanoseconds: 4_000_000 },
      fail: { count: 0, nanoseconds: 0 },
    });
  });

  it("counts an answer from the cache as a success that was not run", () => {
    const statistics = recorder();
    expect(statistics.observe()).not.toHaveProperty("cache");
    statistics.cacheEnabled();
    statistics.executed(batch(1), timings, 120);
    statistics.cacheMiss(30_000);
    const { lastInference } = statistics.snapshot();
    statistics.cacheHit(20_000, 0.05);
    const { inferenceStats, ...rest } = statistics.snapshot();
    expect(rest).toMatchObject({ inferenceCount: 1, executionCount: 1, lastInference });
    expect(inferenceStats).toMatchObject({
      success: { count: 2, nanoseconds: 20_050_000 },
      queue: { count: 2, nanoseconds: 12_030_000 },
      computeInfer: { count: 1, nanoseconds: 5_000_000 },
      cacheHit: { count: 1, nanoseconds: 20_000 },
      cacheMiss: { count: 1, nanoseconds: 30_000 },
    });
    expect(statistics.observe()).toMatchObject({
      success: 2,
      cache: { hits: 1, hit: { microseconds: 20 }, misses: 1, miss: { microseconds: 30 } },
    });
  });

  it("keeps the time of executions by batch size, in ascending order", () => {
    const statistics = recorder();
    for (const sizes of [[8], [1], [5, 3]]) statistics.executed(batch(...sizes), timings, 120);
    const computeInfer = { count: 2, nanoseconds: 10_000_000 };
    expect(statistics.snapshot().batchStats).toMatchObject([
      { batchSize: 1, computeInfer: { count: 1, nanoseconds: 5_000_000 } },
      { batchSize: 8, computeInfer },
    ]);
  });

  it("counts a failed execution as one that ran, and its requests as failures", () => {
    const statistics = recorder();
    statistics.executionFailed(batch(1, 1), 110, 120);
    expect(statistics.snapshot()).toMatchObject({
      inferenceCount: 0,
      executionCount: 1,
      batchStats: [{ batchSize: 2, computeInfer: { count: 1, nanoseconds: 10_000_000 } }],
      inferenceStats: { success: { count: 0 }, fail: { count: 2, nanoseconds: 39_000_000 } },
    });
    expect(statistics.observe().failures).toEqual({
      REJECTED: 0,
      CANCELED: 0,
      BACKEND: 2,
      OTHER: 0,
    });
  });

  it("remembers when it last ran something", () => {
    const statistics = recorder();
    const before = Date.now();
    statistics.failed("REJECTED", 1);
    expect(statistics.snapshot().lastInference).toBe(0);
    statistics.executed(batch(1), timings, 120);
    expect(statistics.snapshot().lastInference).toBeGreaterThanOrEqual(before);
  });

  it("shows the metrics what it knows", () => {
    const statistics = recorder();
    statistics.loaded(1.5);
    statistics.enqueued();
    statistics.enqueued();
    statistics.dequeued(1);
    statistics.executed(batch(2, 3), timings, 120);
    const observation = statistics.observe();
    expect(observation).toMatchObject({
      name: "m",
      version: "1",
      tags: { team: "blue" },
      pending: 1,
      loadSeconds: 1.5,
      success: 2,
      phases: { request: { microseconds: 39_000 }, computeInfer: { microseconds: 10_000 } },
    });
    expect(observation.phases.computeInfer.histogram.cumulative().at(-1)).toBe(2);
    expect(observation.phases.queue.histogram.cumulative().at(-1)).toBe(2);
  });

  it("never says that a request waited a negative time", () => {
    const statistics = recorder();
    statistics.executed(batch(1), timings, 101);
    expect(statistics.snapshot().inferenceStats.queue.nanoseconds).toBe(0);
  });
});
