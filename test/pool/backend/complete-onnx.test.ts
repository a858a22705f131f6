import { describe, expect, it } from "vitest";
import { completeOnnx } from "../../../pool/backend/complete-onnx.ts";
import type { GraphFinding } from "../../../pool/probe/graph-finding.ts";
import type { TensorMetadata } from "../../../protocol/metadata.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";

const options = { defaultMaxBatchSize: 4 };

function finding(input: TensorMetadata["shape"], output: TensorMetadata["shape"]): GraphFinding {
  return {
    inputs: [{ name: "X", datatype: "FP32", shape: input }],
    outputs: [{ name: "Y", datatype: "BYTES", shape: output }],
    loadMilliseconds: 1,
    peakBytes: 1,
  };
}

function config(
  more: Parameters<typeof servedModel>[1] = {},
): ReturnType<typeof servedModel>["config"] {
  return servedModel("m", more).config;
}

describe("completeOnnx", () => {
  it("fills in tensors, batch size and batcher where every first dimension is variable", () => {
    expect(completeOnnx(config(), finding([-1, 3, -1], [-1, 2]), options)).toMatchObject({
      maxBatchSize: 4,
      input: [{ name: "X", dataType: "TYPE_FP32", dims: [3, -1] }],
      output: [{ name: "Y", dataType: "TYPE_STRING", dims: [2] }],
      dynamicBatching: { preferredBatchSize: [4], maxQueueDelayMicroseconds: 0 },
    });
  });

  it("leaves batching off where one first dimension is fixed", () => {
    const complete = completeOnnx(config(), finding([-1, 3], [1, 2]), options);
    expect(complete).toMatchObject({
      maxBatchSize: 0,
      input: [{ dims: [-1, 3] }],
      output: [{ dims: [1, 2] }],
    });
    expect(complete.dynamicBatching).toBeUndefined();
  });

  it("keeps a batch size that the config has", () => {
    expect(
      completeOnnx(config({ maxBatchSize: 16 }), finding([-1, 3], [-1]), options),
    ).toMatchObject({
      maxBatchSize: 16,
      dynamicBatching: { preferredBatchSize: [16] },
    });
  });

  it("adds no batcher for single items", () => {
    const complete = completeOnnx(config({ maxBatchSize: 1 }), finding([-1, 3], [-1]), options);
    expect(complete.dynamicBatching).toBeUndefined();
  });

  it("refuses a batch size that the graph cannot take", () => {
    expect(() => completeOnnx(config({ maxBatchSize: 8 }), finding([1, 3], [1]), options)).toThrow(
      "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified",
    );
  });

  it("reshapes items without dimensions, and writes a scalar as [1]", () => {
    const [batched] = completeOnnx(config(), finding([-1], [-1]), options).input;
    expect(batched).toMatchObject({ dims: [1], reshape: { shape: [] } });
    const [scalar] = completeOnnx(config(), finding([], []), options).input;
    expect(scalar).toMatchObject({ dims: [1] });
    expect(scalar).not.toHaveProperty("reshape");
  });

  it("fills in only the side that is missing", () => {
    const stated = config({ input: [modelInput("X", "TYPE_FP32", [5])] });
    const complete = completeOnnx(stated, finding([-1, 3], [-1, 2]), options);
    expect(complete.input).toBe(stated.input);
    expect(complete.output).toMatchObject([{ name: "Y", dims: [2] }]);
  });

  it("leaves a config alone that states inputs and outputs", () => {
    const stated = config({
      input: [modelInput("X", "TYPE_FP32", [3])],
      output: [modelOutput("Y", "TYPE_STRING", [2])],
    });
    expect(completeOnnx(stated, finding([-1, 3], [-1, 2]), options)).toBe(stated);
  });
});
