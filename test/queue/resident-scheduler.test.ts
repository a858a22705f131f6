import { describe, expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { ResidentScheduler } from "../../queue/resident-scheduler.ts";
import type { RunningVersion } from "../../serving/running-version.ts";
import { ModelStatisticsRecorder } from "../../serving/model-statistics.ts";
import { pendingRequest, requestFor, responseTo } from "../helpers/requests.ts";
import { modelInput, servedModel } from "../helpers/served-model.ts";

const model = servedModel("m", { maxBatchSize: 8, input: [modelInput("IN", "TYPE_FP32", [4])] });

/** Answers at once. */
const version: RunningVersion = {
  model,
  scheduler: {
    inflight: 0,
    enqueue: ({ request, sink }) => sink.send(responseTo(request), true),
    stop: async () => {},
  },
  healthy: true,
  statistics: new ModelStatisticsRecorder({ ...model, tags: {} }),
  close: async () => {},
};

describe("ResidentScheduler", () => {
  it("starts the version for the first request, and stops when all are answered", async () => {
    const { promise: started, resolve: start } = Promise.withResolvers<RunningVersion>();
    const scheduler = new ResidentScheduler(() => started);
    const sent = pendingRequest(requestFor(model, [1, 4], { id: "a" }));
    scheduler.enqueue(sent);
    expect(scheduler.inflight).toBe(1);
    const stopped = scheduler.stop();
    start(version);
    await stopped;
    expect(sent.sink.responses.map(({ id }) => id)).toEqual(["a"]);
    expect(scheduler.inflight).toBe(0);
  });

  it("answers with the reason when the version cannot be started", async () => {
    const reason = new InferenceError(StatusCode.Internal, "no such file");
    const scheduler = new ResidentScheduler(() => Promise.reject(reason));
    const sent = pendingRequest(requestFor(model));
    scheduler.enqueue(sent);
    await scheduler.stop();
    expect(sent.sink.error).toBe(reason);
  });
});
