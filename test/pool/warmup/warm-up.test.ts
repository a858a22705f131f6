import { describe, expect, it } from "vitest";
import type { ModelInstance } from "../../../pool/instance/model-instance.ts";
import type { WarmupSample } from "../../../pool/warmup/read-warmup.ts";
import { warmUp, type WarmupOptions } from "../../../pool/warmup/warm-up.ts";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import { ModelStatisticsRecorder } from "../../../serving/model-statistics.ts";
import { FakeClock, turn } from "../../helpers/fake-clock.ts";
import { HandHeldInstances } from "../../helpers/hand-held-instances.ts";
import { InstantInstances } from "../../helpers/instant-instances.ts";
import { requestFor } from "../../helpers/requests.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";

const model = servedModel("m", {
  maxBatchSize: 4,
  input: [modelInput("IN", "TYPE_FP32", [4])],
  output: [modelOutput("OUT", "TYPE_FP32", [4])],
});

function sample(name: string, batchSize: number, count: number): WarmupSample {
  return { name, request: requestFor(model, [1, 4], { id: name }), batchSize, count };
}

function options(): WarmupOptions & { readonly clock: FakeClock } {
  return {
    statistics: new ModelStatisticsRecorder({ ...model, tags: {} }),
    clock: new FakeClock(),
    timeLimitMilliseconds: 5000,
  };
}

function only(group: { readonly instances: readonly ModelInstance[] }): ModelInstance {
  const [instance] = group.instances;
  if (!instance) throw new Error("no instance");
  return instance;
}

describe("warmUp", () => {
  it("runs copies together, as often as told, one sample after another", async () => {
    const group = new HandHeldInstances();
    const warm = warmUp(only(group), [sample("a", 2, 2), sample("b", 1, 1)], options());
    for (const ran of [["a+a"], ["a+a", "a+a"], ["a+a", "a+a", "b"]]) {
      expect(group.ran).toEqual(ran);
      group.executions.at(-1)?.finish();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await expect(warm).resolves.toBeUndefined();
  });

  it("is counted like requests of clients", async () => {
    const given = options();
    await warmUp(only(new InstantInstances()), [sample("a", 3, 2)], given);
    const { inferenceCount, executionCount, inferenceStats, batchStats } =
      given.statistics.snapshot();
    expect([inferenceCount, executionCount, inferenceStats.success.count]).toEqual([6, 2, 6]);
    expect(
      batchStats.map(({ batchSize, computeInfer }) => [batchSize, computeInfer.count]),
    ).toEqual([[3, 2]]);
    expect(given.statistics.observe()).toMatchObject({ pending: 0, success: 6 });
  });

  it("ends at the first sample that fails, with its name", async () => {
    const group = new HandHeldInstances();
    const warm = warmUp(only(group), [sample("bad", 2, 9), sample("next", 1, 1)], options());
    group.executions[0]?.fail(new InferenceError(StatusCode.Internal, "no such file"));
    await expect(warm).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: "failed to run warmup sample 'bad': no such file; ",
    });
    expect(group.ran).toEqual(["bad+bad"]);
  });

  it("takes the errors of single requests for failures, too", async () => {
    const instance: ModelInstance = {
      name: "m_0",
      hasRoom: true,
      execute: (requests) => {
        for (const [i, { sink }] of requests.entries())
          sink.fail(new InferenceError(StatusCode.Internal, `error ${i % 2}`));
        return Promise.resolve({
          computeInputNanoseconds: 0,
          computeInferNanoseconds: 0,
          computeOutputNanoseconds: 0,
        });
      },
    };
    await expect(warmUp(instance, [sample("s", 4, 1)], options())).rejects.toThrow(
      "failed to run warmup sample 's': error 0; error 1; ",
    );
  });

  it("ends when its time is over, with the name of the sample that is run then", async () => {
    const group = new HandHeldInstances();
    const given = options();
    const warm = warmUp(only(group), [sample("slow", 1, 9)], given);
    group.executions[0]?.finish();
    await turn();
    expect(group.ran).toEqual(["slow", "slow"]);
    void given.clock.advance(5000);
    await expect(warm).rejects.toThrow(
      "failed to run warmup sample 'slow': all samples took longer than --warmup-timeout-secs (5 s); ",
    );
  });

  it("runs no batch that the model does not take", async () => {
    const group = new HandHeldInstances();
    await expect(warmUp(only(group), [sample("s", 8, 1)], options())).rejects.toThrow(
      "failed to run warmup sample 's': batch size 8 for 'instance_0', max allowed is 4; ",
    );
    expect(group.ran).toEqual([]);
  });
});
