import { configDatatype } from "../../protocol/datatype.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { TensorMetadata } from "../../protocol/metadata.ts";
import type { ModelConfig, ModelInput, ModelOutput } from "../../protocol/model-config.ts";
import type { GraphFinding } from "../probe/graph-finding.ts";

export interface CompleteOptions {
  /** The batch size for models that can batch and do not say how much; 0 leaves batching off. */
  readonly defaultMaxBatchSize: number;
}

/**
 * Fills in what a config leaves out and the graph knows: inputs, outputs, the batch size, and the dynamic batcher where
 * batching is possible. A config that states both inputs and outputs is complete and stays as it is.
 * Throws INVALID_ARG when it asks for batches that the graph cannot take.
 */
export function completeOnnx(
  config: ModelConfig,
  finding: GraphFinding,
  options: CompleteOptions,
): ModelConfig {
  const hasInputs = config.input.length + config.batchInput.length > 0;
  if (hasInputs && config.output.length > 0) return config;
  const batched = withBatching(config, finding, options);
  const batching = batched.maxBatchSize > 0;
  return {
    ...batched,
    input: hasInputs ? config.input : finding.inputs.map((tensor) => modelInput(tensor, batching)),
    output:
      config.output.length > 0
        ? config.output
        : finding.outputs.map((tensor) => modelOutput(tensor, batching)),
  };
}

function withBatching(
  config: ModelConfig,
  finding: GraphFinding,
  options: CompleteOptions,
): ModelConfig {
  const possible = [...finding.inputs, ...finding.outputs].every(({ shape }) => shape[0] === -1);
  if (!possible && config.maxBatchSize > 0) {
    const text = "model does not support batching while non-zero max_batch_size is specified";
    throw new InferenceError(
      StatusCode.InvalidArg,
      `autofill failed for model '${config.name}': ${text}`,
    );
  }
  if (!possible) return config;
  const maxBatchSize = config.maxBatchSize || Math.max(options.defaultMaxBatchSize, 0);
  const scheduled = config.dynamicBatching ?? config.sequenceBatching;
  if (maxBatchSize <= 1 || scheduled) return { ...config, maxBatchSize };
  return { ...config, maxBatchSize, dynamicBatching: dynamicBatching(maxBatchSize) };
}

/** What `dynamic_batching { }` means. */
function dynamicBatching(maxBatchSize: number): NonNullable<ModelConfig["dynamicBatching"]> {
  return {
    preferredBatchSize: [maxBatchSize],
    maxQueueDelayMicroseconds: 0,
    preserveOrdering: false,
    priorityLevels: 0,
    defaultPriorityLevel: 0,
    priorityQueuePolicy: {},
  };
}

function modelInput(tensor: TensorMetadata, batching: boolean): ModelInput {
  return {
    ...named(tensor, batching),
    format: "FORMAT_NONE",
    isShapeTensor: false,
    allowRaggedBatch: false,
    optional: false,
    isNonLinearFormatIo: false,
  };
}

function modelOutput(tensor: TensorMetadata, batching: boolean): ModelOutput {
  return {
    ...named(tensor, batching),
    labelFilename: "",
    isShapeTensor: false,
    isNonLinearFormatIo: false,
  };
}

function named(
  { name, datatype, shape }: TensorMetadata,
  batching: boolean,
): Pick<ModelInput, "name" | "dataType" | "dims" | "reshape"> {
  const dataType = configDatatype(datatype);
  const dims = batching ? shape.slice(1) : shape;
  if (dims.length > 0) return { name, dataType, dims };
  // A config has no way to write "no dimensions": it says [1], and reshapes that to nothing where items are scalars.
  return { name, dataType, dims: [1], ...(batching && { reshape: { shape: [] } }) };
}
