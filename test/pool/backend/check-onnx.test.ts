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

  it("refuses batching for a graph whose first dimension is fixed", () => {
    const fixed = { ...finding, inputs: [{ name: "X", datatype: "FP32", shape: [1, 3] }] } as const;
    const { config } = servedModel("m", {
      maxBatchSize: 4,
      input: [modelInput("X", "TYPE_FP32", [3])],
    });
    expect(() => checkOnnx(config, fixed)).toThrow("for the model to support batching");
  });
});
