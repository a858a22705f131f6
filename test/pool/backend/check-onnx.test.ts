import { describe, expect, it } from "vitest";
import { checkOnnx } from "../../../pool/backend/check-onnx.ts";
import type { ModelConfig } from "../../../protocol/model-config.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";

const finding = {
  inputs: [{ name: "X", datatype: "FP32", shape: [-1, 3] }],
  outputs: [{ name: "Y", datatype: "INT64", shape: [-1, -1] }],
  loadMilliseconds: 1,
  peakBytes: 1,
} as const;

function check(more: Partial<ModelConfig>): () => void {
  const { config } = servedModel("m", {
    maxBatchSize: 4,
    input: [modelInput("X", "TYPE_FP32", [3])],
    output: [modelOutput("Y", "TYPE_INT64", [2])],
    ...more,
  });
  return () => checkOnnx(config, finding);
}

describe("checkOnnx", () => {
  it("accepts a config that agrees with the graph", () => {
    expect(check({})).not.toThrow();
    expect(
      check({ maxBatchSize: 0, input: [modelInput("X", "TYPE_FP32", [7, -1])], output: [] }),
    ).not.toThrow();
  });

  it("compares what a reshape makes of the dimensions", () => {
    const input = modelInput("X", "TYPE_FP32", [3, 1], { reshape: { shape: [3] } });
    expect(check({ input: [input] })).not.toThrow();
  });

  it.each<[string, Partial<ModelConfig>]>([
    [
      "unexpected inference input 'Z', allowed inputs are: X",
      { input: [modelInput("X", "TYPE_FP32", [3]), modelInput("Z", "TYPE_FP32", [3])] },
    ],
    [
      "unexpected inference output 'Z', allowed outputs are: Y",
      { output: [modelOutput("Z", "TYPE_FP32", [3])] },
    ],
    [
      "unable to load model 'm', configuration expects datatype TYPE_INT32 for input 'X', model provides TYPE_FP32",
      { input: [modelInput("X", "TYPE_INT32", [3])] },
    ],
    ["unable to load model 'm', configuration expects 0 inputs, model provides 1", { input: [] }],
    [
      "model 'm', tensor 'X': the model expects 2 dimensions (shape [-1,3]) but the model configuration specifies " +
        "3 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, " +
        "making complete shape [-1,3,1])",
      { input: [modelInput("X", "TYPE_FP32", [3, 1])] },
    ],
    [
      "model 'm', tensor 'X': the model expects shape [-1,3] but the model configuration specifies shape [-1,4]",
      { input: [modelInput("X", "TYPE_FP32", [4])] },
    ],
    [
      "model 'm', tensor 'X': the model expects 2 dimensions (shape [-1,3]) but the model configuration specifies " +
        "1 dimensions (shape [3])",
      { maxBatchSize: 0 },
    ],
  ])("refuses with: %s", (text, more) => {
    expect(check(more)).toThrow(expect.objectContaining({ code: "INVALID_ARG", message: text }));
  });

  describe("for a ragged batch", () => {
    const flat = {
      ...finding,
      inputs: [
        { name: "X", datatype: "FP32", shape: [-1] },
        { name: "COUNT", datatype: "INT32", shape: [-1] },
        { name: "SHAPE", datatype: "FP32", shape: [-1, 2] },
      ],
      outputs: [{ name: "Y", datatype: "INT64", shape: [-1] }],
    } as const;
    const source = { sourceInput: ["X"] };
    const count = {
      kind: "BATCH_ELEMENT_COUNT",
      targetName: ["COUNT"],
      dataType: "TYPE_INT32",
      ...source,
    } as const;
    const shape = {
      kind: "BATCH_ITEM_SHAPE",
      targetName: ["SHAPE"],
      dataType: "TYPE_FP32",
      ...source,
    } as const;
    const scatter = {
      kind: "BATCH_SCATTER_WITH_INPUT_SHAPE",
      targetName: ["Y"],
      ...source,
    } as const;
    const ragged = modelInput("X", "TYPE_FP32", [-1, 3], { allowRaggedBatch: true });

    function checkFlat(more: Partial<ModelConfig>): () => void {
      const { config } = servedModel("m", {
        maxBatchSize: 4,
        input: [ragged],
        batchInput: [count, shape],
        output: [modelOutput("Y", "TYPE_INT64", [-1, 3])],
        batchOutput: [scatter],
        ...more,
      });
      return () => checkOnnx(config, flat);
    }

    it("accepts a graph that takes and gives flat tensors", () => {
      expect(checkFlat({})).not.toThrow();
    });

    it.each<[string, Partial<ModelConfig>]>([
      [
        "unable to load model 'm', configuration expects model provides input with shape [-1] for ragged input 'SHAPE', " +
          "model provides [-1,2]",
        { input: [ragged, modelInput("SHAPE", "TYPE_FP32", [2], { allowRaggedBatch: true })] },
      ],
      [
        "unable to load model 'm', configuration expects model provides input with shape [-1] for ragged input 'X', " +
          "which is not supported for optional input",
        { input: [{ ...ragged, optional: true }] },
      ],
      [
        "unexpected inference input 'COUNTS', allowed inputs are: X, COUNT, SHAPE",
        { batchInput: [{ ...count, targetName: ["COUNTS"] }, shape] },
      ],
      [
        "unable to load model 'm', configuration expects datatype TYPE_FP32 for input 'COUNT', model provides TYPE_INT32",
        { batchInput: [{ ...count, dataType: "TYPE_FP32" }, shape] },
      ],
      [
        "unable to load model 'm', batch input kind 'BATCH_ITEM_SHAPE_FLATTEN' expects 1 dimensions, the first of them " +
          "variable, for input 'SHAPE', model provides [-1,2]",
        { batchInput: [count, { ...shape, kind: "BATCH_ITEM_SHAPE_FLATTEN" }] },
      ],
      [
        "unable to load model 'm', batch input kind 'BATCH_ITEM_SHAPE' expects a model with batching",
        { maxBatchSize: 0, batchInput: [count, shape] },
      ],
      [
        "model 'm', tensor 'Y': the model expects 1 dimensions (shape [-1]) but the model configuration specifies " +
          "3 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, " +
          "making complete shape [-1,-1,3])",
        { batchOutput: [] },
      ],
    ])("refuses with: %s", (text, more) => {
      expect(checkFlat(more)).toThrow(
        expect.objectContaining({ code: "INVALID_ARG", message: text }),
      );
    });
  });

  it("refuses batching for a graph whose first dimension is fixed", () => {
    const fixed = { ...finding, inputs: [{ name: "X", datatype: "FP32", shape: [1, 3] }] } as const;
    const { config } = servedModel("m", {
      maxBatchSize: 4,
      input: [modelInput("X", "TYPE_FP32", [3])],
    });
    expect(() => checkOnnx(config, fixed)).toThrow("for the model to support batching");
  });
});
