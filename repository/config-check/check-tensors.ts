import type { ModelConfig, ModelInput, ModelOutput } from "../../protocol/model-config.ts";
import { isEnsemble } from "../platforms.ts";
import type { Refuse } from "./refuse.ts";

/** Checks what a config says of each input and output by itself. */
export function checkTensors(config: ModelConfig, refuse: Refuse): void {
  for (const input of config.input) {
    checkTensor(input, "input", config, refuse);
    if (input.format !== "FORMAT_NONE" && input.dims.length !== 3) {
      refuse("model input NHWC/NCHW require 3 dims");
    }
  }
  for (const output of config.output) checkTensor(output, "output", config, refuse);
}

function checkTensor(
  tensor: ModelInput | ModelOutput,
  role: "input" | "output",
  config: ModelConfig,
  refuse: Refuse,
): void {
  if (tensor.name === "") refuse(`model ${role} must specify 'name'`);
  const subject = `model ${role} '${tensor.name}'`;
  if (tensor.dataType === "TYPE_INVALID") refuse(`${subject} must specify 'data_type'`);
  // Tensors of an ensemble take their shapes from the models behind them.
  if (tensor.dims.length === 0 && !isEnsemble(config)) refuse(`${subject} must specify 'dims'`);
  if (!tensor.dims.every(isDimension)) {
    refuse(
      `${subject} dimension must be integer >= 1, or -1 to indicate a variable-size dimension`,
    );
  }
  checkReshape(tensor, subject, config, refuse);
  if (tensor.isShapeTensor && config.backend !== "tensorrt") {
    refuse("shape tensors are only supported for TensorRT platform");
  }
}

function checkReshape(
  { dims, reshape }: ModelInput | ModelOutput,
  subject: string,
  config: ModelConfig,
  refuse: Refuse,
): void {
  if (!reshape) return;
  if (reshape.shape.length === 0 && config.maxBatchSize === 0) {
    refuse(
      `${subject} cannot have empty reshape for non-batching model as scalar tensors are not supported`,
    );
  }
  if (!reshape.shape.every(isDimension)) {
    refuse(
      `${subject} reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension`,
    );
  }
  if (!sameSegments(dims, reshape.shape)) {
    refuse(`${subject} has different size for dims and reshape`);
  }
}

function isDimension(dimension: number): boolean {
  return dimension >= 1 || dimension === -1;
}

/** Variable dimensions keep their order, and between two of them both shapes hold as many elements. */
function sameSegments(dims: readonly number[], shape: readonly number[]): boolean {
  const expected = segmentSizes(dims);
  const given = segmentSizes(shape);
  return expected.length === given.length && expected.every((size, i) => size === given[i]);
}

function segmentSizes(dims: readonly number[]): readonly bigint[] {
  const sizes = [1n];
  for (const dimension of dims) {
    if (dimension === -1) sizes.push(1n);
    else sizes.push((sizes.pop() ?? 1n) * BigInt(dimension));
  }
  return sizes;
}
