import { describe } from "vitest";
import { directScheduler } from "../../../pool/scheduler/direct-scheduler.ts";
import { EnsembleScheduler } from "../../../serving/ensemble/ensemble-scheduler.ts";
import { ModelStatisticsRecorder } from "../../../serving/model-statistics.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { HandHeldInstances } from "../../helpers/hand-held-instances.ts";
import { pendingRequest, requestFor } from "../../helpers/requests.ts";
import { schedulerContract } from "../../helpers/scheduler-contract.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { step } from "./held-member.ts";

const tensors = {
  input: [modelInput("IN", "TYPE_FP32", [4])],
  output: [modelOutput("OUT", "TYPE_FP32", [4])],
};
const model = servedModel("e", {
  ...tensors,
  platform: "ensemble",
  ensembleScheduling: {
    step: [step("only", { IN: "IN" }, { OUT: "OUT" })],
    maxInflightRequests: 0,
  },
});

describe("EnsembleScheduler, of one step", () => {
  schedulerContract(() => {
    const clock = new FakeClock();
    const instances = new HandHeldInstances();
    const only = servedModel("only", tensors);
    const statistics = new ModelStatisticsRecorder({ ...only, tags: {} });
    const inner = directScheduler({ instances, statistics, clock });
    const member = { model: only, scheduler: inner, healthy: true, statistics };
    const scheduler = new EnsembleScheduler(model, [{ ...member, close: () => inner.stop() }], {
      statistics: new ModelStatisticsRecorder({ ...model, tags: {} }),
      clock,
    });
    return {
      scheduler,
      executions: instances.executions,
      prepare: (id) => pendingRequest(requestFor(model, [4], { id }), clock.now()),
      inHand: () => inner.inflight,
    };
  });
});
