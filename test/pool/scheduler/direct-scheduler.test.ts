import { describe, expect, it } from "vitest";
import { directScheduler } from "../../../pool/scheduler/direct-scheduler.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { SchedulerStand } from "../../helpers/scheduler-stand.ts";
import { schedulerCases } from "./scheduler-cases.ts";

const model = servedModel("m", {
  maxBatchSize: 8,
  input: [modelInput("IN", "TYPE_FP32", [4])],
  output: [modelOutput("OUT", "TYPE_FP32", [4])],
});

describe("directScheduler", () => {
  schedulerCases(() => new SchedulerStand(model, directScheduler));

  it("gives each request an execution of its own, on every instance with room", async () => {
    const stand = new SchedulerStand(model, directScheduler, 3);
    await stand.send("a", "b", "c", "d");
    expect(stand.ran).toEqual(["a", "b", "c"]);
    await stand.finish(1);
    expect(stand.ran).toEqual(["a", "b", "c", "d"]);
    expect(stand.instances.executions[3]?.instance).toBe("instance_1");
  });
});
