import { describe, expect, it } from "vitest";
import { ModelStatisticsRecorder } from "../../../serving/model-statistics.ts";
import { requestRunner } from "../../../pool/scheduler/run-requests.ts";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import { FakeClock, turn } from "../../helpers/fake-clock.ts";
import { HandHeldInstances } from "../../helpers/hand-held-instances.ts";
import { pendingRequest, requestFor } from "../../helpers/requests.ts";
import { modelInput, servedModel } from "../../helpers/served-model.ts";

const model = servedModel("m", { maxBatchSize: 8, input: [modelInput("IN", "TYPE_FP32", [4])] });
const badInput = new InferenceError(StatusCode.InvalidArg, "bad input");

/** Requests on their way through an instance that the test holds in its hands. */
function begin(...ids: string[]) {
  const statistics = new ModelStatisticsRecorder({ ...model, tags: {} });
  const clock = new FakeClock();
  const { instances, executions } = new HandHeldInstances();
  const requests = ids.map((id) => pendingRequest(requestFor(model, [1, 4], { id }), clock.now()));
  const run = requestRunner(statistics, clock);
  const [instance] = instances;
  if (!instance) throw new Error("one instance was asked for");
  return { done: run(instance, requests), requests, executions, statistics };
}

describe("requestRunner", () => {
  it("counts what ran together as one execution", async () => {
    const { done, executions, requests, statistics } = begin("a", "b");
    executions[0]?.finish();
    await done;
    expect(requests.map(({ sink }) => sink.responses.length)).toEqual([1, 1]);
    expect(statistics.observe()).toMatchObject({ success: 2, executionCount: 1 });
  });

  it("runs each request alone when they fail together, and counts each for itself", async () => {
    const { done, executions, requests, statistics } = begin("a", "b", "c");
    executions[0]?.fail(badInput);
    await turn();
    expect(executions.map(({ ids }) => ids)).toEqual(["a+b+c", "a", "b", "c"]);
    executions[1]?.finish();
    executions[2]?.fail(badInput);
    executions[3]?.finish();
    await done;
    expect(requests.map(({ sink }) => sink.error?.message ?? sink.responses.length)).toEqual([
      1,
      "bad input",
      1,
    ]);
    expect(statistics.observe()).toMatchObject({
      success: 2,
      failures: { BACKEND: 1 },
      inferenceCount: 2,
      executionCount: 3,
    });
    expect(statistics.snapshot()).toMatchObject({
      inferenceStats: { success: { count: 2 }, fail: { count: 1 } },
      batchStats: [{ batchSize: 1, computeInfer: { count: 3 } }],
    });
  });

  it.each([StatusCode.Unavailable, StatusCode.Cancelled])(
    "fails all at once with %s, which another run would only meet again",
    async (code) => {
      const { done, executions, requests, statistics } = begin("a", "b");
      executions[0]?.fail(new InferenceError(code, "gone"));
      await done;
      expect(executions).toHaveLength(1);
      expect(requests.map(({ sink }) => sink.error?.code)).toEqual([code, code]);
      expect(statistics.observe()).toMatchObject({ failures: { BACKEND: 2 }, executionCount: 1 });
    },
  );
});
