import type { ServedModel } from "../../protocol/served-model.ts";
import type { ModelConfig, ModelInput, ModelOutput } from "../../protocol/model-config.ts";

/** An input of a config, with everything but name, type and dimensions at its default. */
export function modelInput(
  name: string,
  dataType: string,
  dims: readonly number[],
  more: Partial<ModelInput> = {},
): ModelInput {
  return {
    name,
    dataType,
    dims,
    format: "FORMAT_NONE",
    isShapeTensor: false,
    allowRaggedBatch: false,
    optional: false,
    isNonLinearFormatIo: false,
    ...more,
  };
}

/** An output of a config, likewise. */
export function modelOutput(name: string, dataType: string, dims: readonly number[]): ModelOutput {
  return {
    name,
    dataType,
    dims,
    labelFilename: "",
    isShapeTensor: false,
    isNonLinearFormatIo: false,
  };
}

/** A version of a model whose config has the given fields and otherwise defaults. */
export function servedModel(name: string, config: Partial<ModelConfig>): ServedModel {
  return { name, version: "1", config: { ...emptyConfig, name, ...config } };
}

const emptyConfig: ModelConfig = {
  name: "",
  platform: "",
  backend: "echo",
  runtime: "",
  maxBatchSize: 0,
  input: [],
  output: [],
  batchInput: [],
  batchOutput: [],
  instanceGroup: [],
  defaultModelFilename: "",
  ccModelFilenames: {},
  metricTags: {},
  parameters: {},
  modelWarmup: [],
};
