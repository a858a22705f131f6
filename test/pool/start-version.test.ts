import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type {
  RunningVersion,
  StartListener,
  VersionSource,
} from "../../serving/running-version.ts";
import { SilentLog } from "../helpers/silent-log.ts";
import { systemClock } from "../../serving/clock.ts";
import { RateLimiter } from "../../pool/rate-limiter/rate-limiter.ts";
import { type StartOptions, versionStarter } from "../../pool/start-version.ts";
import { bytesElements } from "../../protocol/bytes-tensor.ts";
import type { ModelConfig, ModelWarmup } from "../../protocol/model-config.ts";
import { cpuGroup } from "../helpers/instance-groups.ts";
import { identityModel } from "../helpers/onnx-model.ts";
import { onnxVersion } from "../helpers/onnx-version.ts";
import { pendingRequest, requestFor, type SentRequest } from "../helpers/requests.ts";
import { modelInput, modelOutput } from "../helpers/served-model.ts";

const identity = identityModel([{ name: "IN", datatype: "FP32", shape: ["n", 4] }, "OUT"]);
const tensors = {
  maxBatchSize: 8,
  input: [modelInput("IN", "TYPE_FP32", [4])],
  output: [modelOutput("OUT", "TYPE_FP32", [4])],
};
/** Shared, so that the same file is probed once. */
let cacheDirectory = "";
beforeAll(() => {
  cacheDirectory = mkdtempSync(path.join(tmpdir(), "tidepool-findings-"));
});
afterAll(() => rmSync(cacheDirectory, { recursive: true }));

const megabyte = 2 ** 20;

async function start(
  source: VersionSource,
  more: Partial<StartOptions> = {},
  log = new SilentLog(),
  listener?: StartListener,
): Promise<RunningVersion> {
  const options = {
    probe: {
      cacheDirectory,
      memoryLimitBytes: 1024 * megabyte,
      timeLimitMilliseconds: 30_000,
    },
    gpuCount: 0,
    autoComplete: true,
    defaultMaxBatchSize: 4,
    splitOversizedBatches: false,
    ...more,
  };
  const version = await versionStarter(options, log)(source, listener);
  onTestFinished(() => version.close());
  return version;
}

async function send(
  version: RunningVersion,
  shape: readonly number[],
  classification = 0,
): Promise<SentRequest> {
  const outputs = classification > 0 ? [{ name: "OUT", classification }] : [];
  const sent = pendingRequest(requestFor(version.model, shape, { outputs }), systemClock.now());
  version.scheduler.enqueue(sent);
  while (!sent.sink.ended) await new Promise((resolve) => setTimeout(resolve, 1));
  return sent;
}

function zeroSample(batchSize: number, count: number): ModelWarmup {
  const inputs = { IN: { dataType: "TYPE_FP32", dims: [4], zeroData: true } };
  return { name: "zeros", batchSize, inputs, count };
}

describe("versionStarter", () => {
  it("completes the config from the graph and answers", async () => {
    const version = await start(onnxVersion(identity));
    expect(version.model.config).toMatchObject({
      maxBatchSize: 4,
      input: [{ name: "IN", dataType: "TYPE_FP32", dims: [4] }],
      dynamicBatching: { preferredBatchSize: [4] },
    });
    const sent = await send(version, [2, 4]);
    expect(sent.sink.responses[0]?.outputs[0]).toMatchObject({ name: "OUT", shape: [2, 4] });
    expect(version.statistics.snapshot()).toMatchObject({ inferenceCount: 2, executionCount: 1 });
  });

  it("takes a config at its word when nothing may be completed", async () => {
    const version = await start(onnxVersion(identity, tensors), { autoComplete: false });
    expect(version.model.config).toMatchObject({ maxBatchSize: 8 });
    expect(version.model.config.dynamicBatching).toBeUndefined();
    const refused = start(onnxVersion(identity), { autoComplete: false });
    await expect(refused).rejects.toMatchObject({ code: "INVALID_ARG" });
  });

  it("splits an oversized batch only when it is told to", async () => {
    const version = await start(onnxVersion(identity), { splitOversizedBatches: true });
    const sent = await send(version, [9, 4]);
    expect(sent.sink.responses[0]?.outputs[0]?.shape).toEqual([9, 4]);
    const strict = await start(onnxVersion(identity));
    expect(() => requestFor(strict.model, [9, 4])).toThrow("batch-size must be <= 4");
  });

  it("warns of each setting that has no effect", async () => {
    const log = new SilentLog();
    const optimization = {
      eagerBatching: true,
      priority: "PRIORITY_DEFAULT" as const,
      gatherKernelBufferThreshold: 0,
    };
    const ccModelFilenames = { "8.9": "model.onnx" };
    await start(onnxVersion(identity, { ...tensors, optimization, ccModelFilenames }), {}, log);
    expect(log.warnings).toEqual([
      "model 'm': 'optimization.eager_batching' has no effect yet",
      "model 'm': 'cc_model_filenames' has no effect yet",
    ]);
  });

  it("classifies with the labels of the model's folder", async () => {
    const output = [{ ...modelOutput("OUT", "TYPE_FP32", [4]), labelFilename: "labels.txt" }];
    const source = onnxVersion(identity, { ...tensors, output });
    writeFileSync(path.join(source.modelDirectory, "labels.txt"), "cat\ndog\n");
    const sent = await send(await start(source), [1, 4], 2);
    const bytes = sent.sink.responses[0]?.outputs[0]?.bytes ?? new Uint8Array();
    const strings = [...bytesElements(bytes)].map((element) => Buffer.from(element).toString());
    expect(strings).toEqual(["0.000000:0:cat", "0.000000:1:dog"]);
  });

  it("runs every instance's warmup before it answers, and says when that begins", async () => {
    const phases: string[] = [];
    const listener = { onPhase: (phase: string) => void phases.push(phase), onFetched: () => {} };
    const modelWarmup = [zeroSample(2, 3)];
    const instanceGroup = [cpuGroup(2)];
    const source = onnxVersion(identity, { ...tensors, modelWarmup, instanceGroup });
    const version = await start(source, {}, new SilentLog(), listener);
    expect(version.statistics.snapshot()).toMatchObject({
      inferenceCount: 12,
      executionCount: 6,
      batchStats: [{ batchSize: 2, computeInfer: { count: 6 } }],
    });
    expect(phases).toEqual(["fetch", "load", "warmup"]);
  });

  it("does not load a model whose warmup fails", async () => {
    const loading = start(onnxVersion(identity, { ...tensors, modelWarmup: [zeroSample(9, 1)] }));
    await expect(loading).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: "failed to run warmup sample 'zeros': batch size 9 for 'm_0', max allowed is 8; ",
    });
  });

  it("lets go of its resources when it fails to load and when it closes", async () => {
    const rateLimiter = new RateLimiter([]);
    const rate = { priority: 0, resources: [{ name: "R", global: false, count: 1 }] };
    const local = { ...tensors, instanceGroup: [{ ...cpuGroup(), rateLimiter: rate }] };
    const [resource] = rate.resources.map((one) => ({ ...one, global: true }));
    const everywhere = { priority: 0, resources: resource ? [resource] : [] };
    const shared = { ...tensors, instanceGroup: [{ ...cpuGroup(), rateLimiter: everywhere }] };
    const warmed = { ...local, modelWarmup: [zeroSample(9, 1)] };
    await expect(start(onnxVersion(identity, warmed), { rateLimiter })).rejects.toThrow("zeros");
    const first = await start(onnxVersion(identity, shared), { rateLimiter });
    await expect(start(onnxVersion(identity, local), { rateLimiter })).rejects.toThrow(
      'Resource "R" is present as both global and device-specific resource',
    );
    await first.close();
    const second = await start(onnxVersion(identity, local), { rateLimiter });
    expect((await send(second, [1, 4])).sink.responses).toHaveLength(1);
  });

  it("answers what it has taken before it closes", async () => {
    const version = await start(onnxVersion(identity));
    const sent = pendingRequest(requestFor(version.model), systemClock.now());
    version.scheduler.enqueue(sent);
    await version.close();
    expect(sent.sink.responses).toHaveLength(1);
  });

  const sequence = {
    maxSequenceIdleMicroseconds: 0,
    controlInput: [],
    state: [],
    iterativeSequence: true,
  };
  const unsupported: [string, Partial<ModelConfig>][] = [
    ["sequence_batching.iterative_sequence", { sequenceBatching: sequence }],
    ["model_transaction_policy.decoupled", { modelTransactionPolicy: { decoupled: true } }],
    [
      "input.is_shape_tensor",
      { input: [modelInput("IN", "TYPE_FP32", [4], { isShapeTensor: true })] },
    ],
    [
      "input.allow_ragged_batch",
      {
        backend: "pytorch",
        input: [modelInput("IN", "TYPE_FP32", [4], { allowRaggedBatch: true })],
      },
    ],
  ];
  it.each(unsupported)("refuses to load a model that needs %s", async (setting, config) => {
    await expect(start(onnxVersion(identity, { ...tensors, ...config }))).rejects.toMatchObject({
      code: "UNSUPPORTED",
      message: `model 'm': '${setting}' is not available in this version of tidepool`,
    });
  });

  it("refuses a platform that nobody knows with the reference's text", async () => {
    const source = onnxVersion(identity, { backend: "", platform: "foo" });
    await expect(start(source)).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: "unexpected platform type 'foo' for m",
    });
  });

  it("loads a model that wants a response cache, which it then does without", async () => {
    const version = await start(onnxVersion(identity, { responseCache: { enable: true } }));
    expect((await send(version, [1, 4])).sink.responses).toHaveLength(1);
  });
});
