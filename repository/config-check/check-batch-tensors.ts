import type { BatchInput, BatchOutput, ModelConfig } from "../../protocol/model-config.ts";
import type { Refuse } from "./refuse.ts";

/** Checks the tensors that the server makes from, or takes apart by, the shapes of a ragged batch. */
export function checkBatchTensors(config: ModelConfig, refuse: Refuse): void {
  const inputs = new Set(config.input.map(({ name }) => name));
  for (const batchInput of config.batchInput) checkBatchInput(batchInput, inputs, refuse);
  checkBatchOutputs(config, inputs, refuse);
}

function checkBatchInput(tensor: BatchInput, inputs: ReadonlySet<string>, refuse: Refuse): void {
  if (tensor.targetName.length === 0) {
    refuse(`batch input kind '${tensor.kind}' expects a target name, got none`);
  }
  checkSource(tensor, "input", inputs, refuse);
  if (tensor.dataType !== "TYPE_INT32" && tensor.dataType !== "TYPE_FP32") {
    refuse("batch input data type must be TYPE_INT32 or TYPE_FP32");
  }
}

function checkBatchOutputs(config: ModelConfig, inputs: ReadonlySet<string>, refuse: Refuse): void {
  const outputs = new Set(config.output.map(({ name }) => name));
  const targets = new Set<string>();
  for (const batchOutput of config.batchOutput) {
    if (batchOutput.targetName.length === 0) {
      refuse(`batch output kind '${batchOutput.kind}' expects a target name, got none`);
    }
    for (const target of batchOutput.targetName) {
      if (!outputs.has(target)) refuse(`unknown target output name '${target}'`);
      if (targets.has(target)) refuse(`target output name '${target}' can only be specified once`);
      targets.add(target);
    }
    checkSource(batchOutput, "output", inputs, refuse);
  }
}

function checkSource(
  { kind, sourceInput }: BatchInput | BatchOutput,
  role: "input" | "output",
  inputs: ReadonlySet<string>,
  refuse: Refuse,
): void {
  if (sourceInput.length !== 1) {
    refuse(`batch ${role} kind '${kind}' expects 1 source input, got ${sourceInput.length}`);
  }
  const unknown = sourceInput.find((name) => !inputs.has(name));
  if (unknown !== undefined) refuse(`unknown source input name '${unknown}'`);
}
