import { describe, expect, it, onTestFinished } from "vitest";
import { versionStarter } from "../../pool/start-version.ts";
import type { BatchInput, ModelConfig } from "../../protocol/model-config.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import { systemClock } from "../../serving/clock.ts";
import type { RunningVersion } from "../../serving/running-version.ts";
import { plainBatching } from "../helpers/dynamic-batching.ts";
import { eventually } from "../helpers/eventually.ts";
import { onnxModel, type OnnxNode, type OnnxTensor } from "../helpers/onnx-model.ts";
import { onnxVersion, testFolder } from "../helpers/onnx-version.ts";
import { pendingRequest, requestFor, type SentRequest } from "../helpers/requests.ts";
import { modelInput, modelOutput } from "../helpers/served-model.ts";
import { SilentLog } from "../helpers/silent-log.ts";

const vector = (name: string, datatype: OnnxTensor["datatype"], size = name): OnnxTensor => ({
  name,
  datatype,
  shape: [size],
});

function constant(name: string, values: readonly number[], shape = [values.length]) {
  const bytes = new Uint8Array(BigInt64Array.from(values.map(BigInt)).buffer);
  return { name, datatype: "INT64" as const, shape, bytes };
}

function node(op: string, inputs: string, output: string): OnnxNode {
  return { op, inputs: inputs.split(" "), outputs: [output] };
}

/**
 * Sums of each request's elements, taken from running sums over all of them at the places where the requests begin and
 * end; twice each element; the shapes of the items, and how many elements the largest request has.
 */
const ragged = onnxModel({
  inputs: [
    vector("IN", "FP32"),
    vector("ENDS", "INT32"),
    vector("EDGES", "INT32"),
    vector("WIDTH", "FP32"),
    { name: "SHAPES", datatype: "INT32", shape: ["items", 1] },
  ],
  outputs: [
    vector("SUM", "FP32", "n"),
    vector("TWICE", "FP32", "all"),
    { name: "SHAPE", datatype: "INT32", shape: ["items", 1] },
    vector("WIDEST", "INT64", "n"),
  ],
  initializers: [
    { ...vector("ZERO", "FP32"), shape: [1], bytes: new Uint8Array(4) },
    constant("AXIS", [0], []),
    constant("FIRST", [0]),
    constant("SECOND", [1]),
    constant("LAST", [-1]),
    constant("END", [1_000_000]),
  ],
  nodes: [
    node("CumSum", "IN AXIS", "running"),
    node("Concat", "ZERO running", "sums"),
    node("Gather", "sums EDGES", "atEdges"),
    node("Slice", "atEdges SECOND END", "atEnds"),
    node("Slice", "atEdges FIRST LAST", "atStarts"),
    node("Sub", "atEnds atStarts", "SUM"),
    node("Add", "IN IN", "TWICE"),
    node("Identity", "SHAPES", "SHAPE"),
    node("Shape", "WIDTH", "widest"),
    node("Shape", "ENDS", "requests"),
    node("Expand", "widest requests", "WIDEST"),
  ].map((one) => (one.op === "Concat" ? { ...one, attributes: { axis: 0 } } : one)),
});

function batchInput(kind: BatchInput["kind"], target: string, dataType: string): BatchInput {
  return { kind, targetName: [target], dataType, sourceInput: ["IN"] };
}

const one = { dims: [1], reshape: { shape: [] } };
const config: Partial<ModelConfig> = {
  maxBatchSize: 8,
  dynamicBatching: { ...plainBatching, preferredBatchSize: [3], maxQueueDelayMicroseconds: 60e6 },
  input: [modelInput("IN", "TYPE_FP32", [-1], { allowRaggedBatch: true })],
  batchInput: [
    batchInput("BATCH_ACCUMULATED_ELEMENT_COUNT", "ENDS", "TYPE_INT32"),
    batchInput("BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", "EDGES", "TYPE_INT32"),
    batchInput("BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", "WIDTH", "TYPE_FP32"),
    batchInput("BATCH_ITEM_SHAPE", "SHAPES", "TYPE_INT32"),
  ],
  output: [
    { ...modelOutput("SUM", "TYPE_FP32", []), ...one },
    modelOutput("TWICE", "TYPE_FP32", [-1]),
    modelOutput("SHAPE", "TYPE_INT32", [1]),
    { ...modelOutput("WIDEST", "TYPE_INT64", []), ...one },
  ],
  batchOutput: [
    { kind: "BATCH_SCATTER_WITH_INPUT_SHAPE", targetName: ["TWICE"], sourceInput: ["IN"] },
  ],
};

async function start(more: Partial<ModelConfig> = {}): Promise<RunningVersion> {
  const options = {
    probe: {
      cacheDirectory: testFolder(),
      memoryLimitBytes: 2 ** 30,
      timeLimitMilliseconds: 30_000,
    },
    gpuCount: 0,
    autoComplete: true,
    defaultMaxBatchSize: 4,
    splitOversizedBatches: false,
  };
  const version = await versionStarter(
    options,
    new SilentLog(),
  )(onnxVersion(ragged, { ...config, ...more }));
  onTestFinished(() => version.close());
  return version;
}

function send({ model, scheduler }: RunningVersion, ...values: readonly number[]): SentRequest {
  const bytes = new Uint8Array(Float32Array.from(values).buffer);
  const inputs: Tensor[] = [{ name: "IN", datatype: "FP32", shape: [1, values.length], bytes }];
  const request = requestFor(model, undefined, { inputs });
  const sent = pendingRequest(request, systemClock.now());
  scheduler.enqueue(sent);
  return sent;
}

function numbers({ datatype, bytes }: Tensor): number[] {
  const { buffer } = bytes.slice();
  if (datatype === "INT64") return [...new BigInt64Array(buffer)].map(Number);
  return [...(datatype === "FP32" ? new Float32Array(buffer) : new Int32Array(buffer))];
}

function answered({ sink }: SentRequest): Record<string, unknown> {
  const outputs = sink.responses.flatMap((response) => response.outputs);
  return Object.fromEntries(
    outputs.map((output) => [output.name, [output.shape, numbers(output)]]),
  );
}

describe("a model with ragged inputs", () => {
  it("runs requests of different shapes together and gives each its own", async () => {
    const version = await start();
    const sent = [send(version, 1, 2, 3), send(version), send(version, 4, 5)];
    await eventually(() => expect(sent.every(({ sink }) => sink.ended)).toBe(true));
    expect(sent.map(({ sink }) => sink.error?.message)).toEqual([undefined, undefined, undefined]);
    expect(sent.map(answered)).toEqual([
      {
        SUM: [[1, 1], [6]],
        TWICE: [
          [1, 3],
          [2, 4, 6],
        ],
        SHAPE: [[1, 1], [3]],
        WIDEST: [[1, 1], [3]],
      },
      { SUM: [[1, 1], [0]], TWICE: [[1, 0], []], SHAPE: [[1, 1], [0]], WIDEST: [[1, 1], [3]] },
      {
        SUM: [[1, 1], [9]],
        TWICE: [
          [1, 2],
          [8, 10],
        ],
        SHAPE: [[1, 1], [2]],
        WIDEST: [[1, 1], [3]],
      },
    ]);
  });

  it("takes the shape of a request that runs alone, too", async () => {
    const version = await start({ dynamicBatching: plainBatching });
    const sent = send(version, 7, 8);
    await eventually(() => expect(sent.sink.ended).toBe(true));
    expect(answered(sent)).toMatchObject({
      SUM: [[1, 1], [15]],
      TWICE: [
        [1, 2],
        [14, 16],
      ],
    });
  });
});
