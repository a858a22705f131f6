import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { directScheduler } from "../../../pool/scheduler/direct-scheduler.ts";
import { ModelStatisticsRecorder } from "../../../serving/model-statistics.ts";
import { splitOversized } from "../../../pool/scheduler/split-oversized.ts";
import type { SchedulerOptions } from "../../../pool/scheduler/queue-scheduler.ts";
import { systemClock } from "../../../serving/clock.ts";
import { joinBytesElements } from "../../../protocol/bytes-tensor.ts";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { Tensor } from "../../../protocol/tensor.ts";
import { turn } from "../../helpers/fake-clock.ts";
import { InstantInstances } from "../../helpers/instant-instances.ts";
import { pendingRequest, requestFor, responseTo } from "../../helpers/requests.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { SchedulerStand } from "../../helpers/scheduler-stand.ts";
import { schedulerCases } from "./scheduler-cases.ts";

const model = {
  ...servedModel("m", {
    maxBatchSize: 4,
    input: [modelInput("IN", "TYPE_FP32", [4])],
    output: [modelOutput("OUT", "TYPE_FP32", [4])],
  }),
  splitOversizedBatches: true,
};
const textModel = {
  ...servedModel("m", {
    maxBatchSize: 3,
    input: [modelInput("IN", "TYPE_STRING", [2])],
    output: [modelOutput("OUT", "TYPE_STRING", [2])],
  }),
  splitOversizedBatches: true,
};

function splitting(options: SchedulerOptions) {
  return splitOversized(directScheduler(options), 4);
}

describe("splitOversized", () => {
  schedulerCases(() => new SchedulerStand(model, splitting));

  it("runs ten items in parts of four, four and two and answers once", async () => {
    const stand = new SchedulerStand(model, splitting);
    const sent = stand.enqueue("a", [10, 4]);
    await turn();
    for (let i = 0; i < 3; i++) {
      expect(sent.sink.ended).toBe(false);
      await stand.finish(i);
    }
    const sizes = stand.instances.executions.map(({ requests }) => requests[0]?.request.batchSize);
    expect(sizes).toEqual([4, 4, 2]);
    expect(sent.sink).toMatchObject({ ended: true, responses: [{ id: "a" }] });
    expect(sent.sink.responses[0]?.outputs[0]?.shape).toEqual([10, 4]);
  });

  it("joins the parts in order, in whatever order they end", async () => {
    const stand = new SchedulerStand(model, splitting, 3);
    const bytes = Uint8Array.from({ length: 9 * 16 }, (_, i) => i);
    const inputs: Tensor[] = [{ name: "IN", datatype: "FP32", shape: [9, 4], bytes }];
    const sent = stand.enqueue("a", undefined, { inputs });
    await turn();
    for (const i of [2, 0, 1]) await stand.finish(i);
    expect(sent.sink.responses[0]?.outputs[0]?.bytes).toEqual(bytes);
  });

  it("gives back what went in, whatever the elements are", async () => {
    const row = fc.tuple(fc.uint8Array({ maxLength: 9 }), fc.uint8Array({ maxLength: 9 }));
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 20 }), async (rows) => {
        const bytes = joinBytesElements(rows.flat());
        const shape = [rows.length, 2];
        const inputs: Tensor[] = [{ name: "IN", datatype: "BYTES", shape, bytes }];
        const sent = pendingRequest(requestFor(textModel, undefined, { inputs }));
        const options = {
          instances: new InstantInstances(),
          statistics: new ModelStatisticsRecorder({ ...textModel, tags: {} }),
          clock: systemClock,
        };
        splitOversized(directScheduler(options), 3).enqueue(sent);
        await turn();
        expect(sent.sink.responses[0]?.outputs).toEqual([{ ...inputs[0], name: "OUT" }]);
      }),
      { numRuns: 50 },
    );
  });

  it("fails the request and takes back the rest when one part fails", async () => {
    const stand = new SchedulerStand(model, splitting);
    const sent = stand.enqueue("a", [12, 4]);
    await turn();
    stand.instances.executions[0]?.fail(new InferenceError(StatusCode.Internal, "no luck"));
    await turn();
    expect(sent.sink.error).toMatchObject({ code: "INTERNAL", message: "no luck" });
    expect(stand.instances.executions).toHaveLength(1);
    expect(stand.scheduler.inflight).toBe(0);
  });

  it("takes every part back when the caller hangs up", async () => {
    const stand = new SchedulerStand(model, splitting);
    await stand.send("busy");
    const sent = stand.enqueue("a", [12, 4]);
    sent.call.cancel();
    expect(sent.sink.error?.code).toBe("CANCELLED");
    expect(stand.scheduler.inflight).toBe(1);
  });

  it("fails when the parts' outputs do not fit together", async () => {
    const stand = new SchedulerStand(model, splitting, 2);
    const sent = stand.enqueue("a", [8, 4]);
    await turn();
    const [first, second] = stand.instances.executions;
    first?.finish();
    const pending = second?.requests[0];
    if (!pending) throw new Error("the second part did not run");
    const response = responseTo(pending.request);
    const outputs = response.outputs.map((output) => ({ ...output, shape: [4, 5] }));
    pending.sink.send({ ...response, outputs }, true);
    expect(sent.sink.error).toMatchObject({
      code: "INTERNAL",
      message:
        "output 'OUT': the parts of a split batch have shapes [4,4] and [4,5], expected them to differ in the first dimension only",
    });
  });

  it("refuses a batch that would become thousands of parts", () => {
    const stand = new SchedulerStand(
      {
        ...servedModel("m", { maxBatchSize: 4, input: [modelInput("IN", "TYPE_FP32", [-1])] }),
        splitOversizedBatches: true,
      },
      splitting,
    );
    const sent = stand.enqueue("", [1_000_000, 0]);
    expect(sent.sink.error).toMatchObject({
      code: "INVALID_ARG",
      message:
        "[request id: <id_unknown>] a batch of 1000000 splits into 250000 parts, expected at most 4096",
    });
  });
});
