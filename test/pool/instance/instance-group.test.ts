import { writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { placeInstances, startInstances } from "../../../pool/instance/instance-group.ts";
import type { InstanceGroup } from "../../../pool/instance/model-instance.ts";
import { ModelStatisticsRecorder } from "../../../serving/model-statistics.ts";
import { systemClock } from "../../../serving/clock.ts";
import { requestRunner } from "../../../pool/scheduler/run-requests.ts";
import type { ModelConfig } from "../../../protocol/model-config.ts";
import type { Tensor } from "../../../protocol/tensor.ts";
import { cpuGroup } from "../../helpers/instance-groups.ts";
import { identityModel, onnxModel } from "../../helpers/onnx-model.ts";
import { onnxVersion, testFolder } from "../../helpers/onnx-version.ts";
import { pendingRequest, type SentRequest } from "../../helpers/requests.ts";
import { uncheckedRequest } from "../../helpers/unchecked-request.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";

const io = {
  maxBatchSize: 8,
  input: [modelInput("X", "TYPE_FP32", [-1])],
  output: [modelOutput("Y", "TYPE_FP32", [-1])],
};
const identity = identityModel([{ name: "X", datatype: "FP32", shape: ["n", "w"] }, "Y"]);

async function start(model: Uint8Array, config: Partial<ModelConfig> = io): Promise<InstanceGroup> {
  const source = onnxVersion(model, config);
  const group = await startInstances(source, { name: "m", version: "1", config: source.config });
  onTestFinished(() => group.close());
  return group;
}

function floats(shape: readonly number[], values: readonly number[]): Tensor {
  return {
    name: "X",
    datatype: "FP32",
    shape,
    bytes: new Uint8Array(Float32Array.from(values).buffer),
  };
}

const served = servedModel("m", io);
function request(values: readonly number[], id = ""): SentRequest {
  return pendingRequest(uncheckedRequest(served, [floats([1, values.length], values)], { id }));
}

function answered({ sink }: SentRequest): readonly number[] {
  const bytes = sink.responses[0]?.outputs[0]?.bytes ?? new Uint8Array();
  return [...new Float32Array(Uint8Array.from(bytes).buffer)];
}

describe("startInstances", () => {
  it("answers each request of a batch with its own rows", async () => {
    const group = await start(identity);
    const requests = [request([1, 2], "a"), request([3, 4], "b")];
    const timings = await group.next()?.execute(requests);
    expect(requests.map(answered)).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(requests.map(({ sink }) => sink.responses[0]?.id)).toEqual(["a", "b"]);
    expect(timings?.computeInferNanoseconds).toBeGreaterThan(0);
  });

  it("runs the saved graph, or the original where that does not open", async () => {
    const source = onnxVersion(identity, io);
    const folder = testFolder();
    const answer = async (): Promise<readonly number[]> => {
      const model = { name: "m", version: "1", config: source.config };
      const group = await startInstances(source, model, { savedGraph: folder });
      const sent = request([1, -2]);
      await group.next()?.execute([sent]);
      await group.close();
      return answered(sent);
    };
    expect(await answer()).toEqual([1, -2]);
    const { inputs, outputs } = {
      inputs: [{ name: "X", datatype: "FP32", shape: ["n", "w"] }],
      outputs: [{ name: "Y", datatype: "FP32", shape: ["n", "w"] }],
    } as const;
    const nodes = [{ op: "Abs", inputs: ["X"], outputs: ["Y"] }];
    writeFileSync(path.join(folder, "model.onnx"), onnxModel({ inputs, outputs, nodes }));
    expect(await answer()).toEqual([1, 2]);
  });

  it("keeps executions that are sent in one turn apart, large ones too", async () => {
    const group = await start(identity);
    const large = Array.from({ length: 20_000 }, (_, i) => i);
    const requests = Array.from({ length: 20 }, (_, i) => request(i % 5 === 0 ? large : [i]));
    await Promise.all(
      group.instances.flatMap((instance) => requests.map((one) => instance.execute([one]))),
    );
    expect(requests.map(answered)).toEqual(requests.map((_, i) => (i % 5 === 0 ? large : [i])));
  });

  it("hands work to the instance with the least to do", async () => {
    const group = await start(identity, { ...io, instanceGroup: [cpuGroup(2)] });
    const first = group.next();
    const running = first?.execute([request([1])]);
    expect(group.next()?.name).not.toBe(first?.name);
    await running;
  });

  it("lets one bad request of a batch fail alone", async () => {
    const model = identityModel([{ name: "X", datatype: "BYTES", shape: ["n", 1] }, "Y"]);
    const strings = { ...io, input: [modelInput("X", "TYPE_STRING", [1])] };
    const group = await start(model, strings);
    const [good, bad] = [[0x61], [0xff]].map((element) =>
      pendingRequest(
        uncheckedRequest(served, [
          {
            name: "X",
            datatype: "BYTES",
            shape: [1, 1],
            bytes: Uint8Array.from([1, 0, 0, 0, ...element]),
          },
        ]),
      ),
    );
    const statistics = new ModelStatisticsRecorder({ ...served, tags: {} });
    const [instance] = group.instances;
    const both = [good, bad].filter((one) => one !== undefined);
    if (instance) await requestRunner(statistics, systemClock)(instance, both);
    expect(statistics.observe()).toMatchObject({ success: 1, failures: { BACKEND: 1 } });
    expect(good?.sink.responses).toHaveLength(1);
    expect(bad?.sink.responses).toHaveLength(0);
    expect(bad?.sink.error?.message).toContain("input 'X': element 0 is not valid UTF-8");
  });

  it("rejects with the model's own error and answers nobody", async () => {
    const model = onnxModel({
      inputs: [{ name: "X", datatype: "FP32", shape: ["n", 2] }],
      outputs: [{ name: "Y", datatype: "FP32", shape: ["n", 2] }],
      nodes: [{ op: "Neg", inputs: ["X"], outputs: ["Y"] }],
    });
    const one = request([1, 2, 3]);
    await expect((await start(model)).next()?.execute([one])).rejects.toMatchObject({
      code: "INVALID_ARG",
    });
    expect(one.sink.responses).toHaveLength(0);
  });

  it("fails with the reason of the instance that does not load", async () => {
    await expect(start(Uint8Array.of(1))).rejects.toThrow("failed to load model 'm'");
  });

  it("names a backend that is not there", async () => {
    await expect(start(identity, { backend: "python" })).rejects.toThrow(
      "model 'm': backend 'python' is not available in this version of tidepool",
    );
  });

  it("gives up what still runs when it closes", async () => {
    const group = await start(identity);
    const running = group.next()?.execute([request([1])]);
    const settled = Promise.allSettled([running]);
    await group.close();
    expect(await settled).toMatchObject([{ status: "rejected", reason: { code: "UNAVAILABLE" } }]);
    expect(group.healthy).toBe(false);
  });

  it("tells its listener of room after an execution", async () => {
    const group = await start(identity);
    let told = 0;
    group.onRoom(() => told++);
    await group.next()?.execute([request([1])]);
    await sleep(1);
    expect(told).toBeGreaterThan(0);
  });
});

describe("placeInstances", () => {
  const group = { ...cpuGroup(), kind: "KIND_GPU" } as const;

  it("puts count instances on each GPU", () => {
    const model = servedModel("m", { instanceGroup: [{ ...group, count: 2, gpus: [1, 3] }] });
    const devices = placeInstances(model, [0, 1, 2, 3]).map(({ name, device }) => [
      name,
      "id" in device && device.id,
    ]);
    expect(devices).toEqual([
      ["m_0", 1],
      ["m_1", 1],
      ["m_2", 3],
      ["m_3", 3],
    ]);
  });

  it.each([
    [257, [cpuGroup(257)]],
    [300, [cpuGroup(100), { ...group, count: 100, gpus: [0, 1] }]],
    [2 ** 31, [cpuGroup(2 ** 31)]],
  ])("refuses %d instances", (total, instanceGroup) => {
    expect(() => placeInstances(servedModel("m", { instanceGroup }), [0, 1])).toThrow(
      `model 'm': instance groups ask for ${total} instances, expected at most 256`,
    );
  });

  it("places as many instances as the bound allows", () => {
    const instanceGroup = [cpuGroup(56), { ...group, count: 100, gpus: [0, 1] }];
    expect(placeInstances(servedModel("m", { instanceGroup }), [0, 1])).toHaveLength(256);
  });

  it("refuses KIND_GPU where there is none", () => {
    expect(() => placeInstances(servedModel("m", { instanceGroup: [group] }), [])).toThrow(
      "instance group m of model m has kind KIND_GPU but no GPUs are available",
    );
  });

  it("refuses a GPU that is not there", () => {
    const model = servedModel("m", { instanceGroup: [{ ...group, gpus: [7] }] });
    expect(() => placeInstances(model, [0, 1])).toThrow("names GPU 7, available: 0, 1");
  });

  it("runs KIND_AUTO on the CPU where there is no GPU", () => {
    const model = servedModel("m", { instanceGroup: [{ ...group, kind: "KIND_AUTO" }] });
    expect(placeInstances(model, [])).toEqual([{ name: "m_0", device: { kind: "cpu" } }]);
  });
});
