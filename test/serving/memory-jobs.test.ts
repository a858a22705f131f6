import { describe, expect, it } from "vitest";
import { anonymous } from "../../protocol/call.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import type { WebhookSender } from "../../protocol/webhook.ts";
import { MemoryDeliveries } from "../../serving/memory-deliveries.ts";
import { MemoryJobs } from "../../serving/memory-jobs.ts";
import { ServingEngine } from "../../serving/serving-engine.ts";
import { eventually } from "../helpers/eventually.ts";
import { HandHeldInstances } from "../helpers/hand-held-instances.ts";
import { requestFor } from "../helpers/requests.ts";
import { ModelsInMemory, runningVersion } from "../helpers/running-models.ts";
import { modelInput, modelOutput, servedModel } from "../helpers/served-model.ts";
import { SilentLog } from "../helpers/silent-log.ts";
import { jobCases, type JobStand, standLimits } from "./job-cases.ts";
import { jobTraceCases } from "./job-trace-cases.ts";
import { webhookCases } from "./webhook-cases.ts";

const model: ServedModel = servedModel("echo", {
  input: [modelInput("IN", "TYPE_FP32", [-1])],
  output: [modelOutput("OUT", "TYPE_FP32", [-1])],
});

function startMemoryJobs(
  limits = standLimits,
  maxBytes = 1024 * 1024,
  sender?: WebhookSender,
): JobStand {
  const instances = new HandHeldInstances();
  const models = new ModelsInMemory(runningVersion(model, instances));
  const engine = new ServingEngine(models, { strictReadiness: true });
  const webhooks = sender && new MemoryDeliveries(sender, new SilentLog());
  const jobs = new MemoryJobs({ ...limits, engine, maxBytes, webhooks });
  const close = (): Promise<void> => {
    jobs.close();
    return Promise.resolve();
  };
  return { jobs, model, executions: () => instances.executions, close };
}

describe("MemoryJobs", () => {
  jobCases((limits) => Promise.resolve(startMemoryJobs(limits)));

  describe("with traces", () => {
    jobTraceCases((tracer) => Promise.resolve(startMemoryJobs({ ...standLimits, tracer })));
  });

  describe("with webhooks", () => {
    webhookCases((sender) => Promise.resolve(startMemoryJobs(standLimits, 1024 * 1024, sender)));
  });

  it("lets those that ended longest ago make room for new ones, but no others", async () => {
    const { jobs, executions } = startMemoryJobs(standLimits, 100);
    const submit = (elements: number): Promise<{ id: string }> =>
      jobs.submit(jobs.newId("echo"), {
        principal: anonymous,
        request: requestFor(model, [elements]),
        binaryOutputs: "all",
        keyed: false,
      });
    const { id } = await submit(20);
    await expect(submit(20)).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining("--job-memory-mb"),
    });
    await eventually(() => expect(executions()).toHaveLength(1));
    executions()[0]?.finish();
    await eventually(async () =>
      expect(await jobs.find(anonymous, id)).toMatchObject({ state: "done" }),
    );
    await submit(20);
    expect(await jobs.find(anonymous, id)).toBeUndefined();
    jobs.close();
  });
});
