import type { ModelConfig, ModelEnsembling } from "../../protocol/model-config.ts";
import { refuse } from "./refuse.ts";

/** Checks an ensemble as far as its own config tells: what it may not say, and that its tensors connect. */
export function checkEnsemble(config: ModelConfig, modelName: string): void {
  const { ensembleScheduling } = config;
  if (config.platform !== "ensemble" && ensembleScheduling) {
    refuse(
      `ensemble scheduling cannot be set for model '${modelName}' whose platform is not ensemble`,
    );
  }
  if (config.backend !== "") {
    refuse(
      `Ensemble model '${modelName}' must have platform type 'ensemble' and empty backend type`,
    );
  }
  if (!ensembleScheduling) {
    refuse(`ensemble scheduling must be set for ensemble ${modelName} whose platform is ensemble`);
  }
  checkForeignSettings(config, modelName);
  checkSteps(ensembleScheduling, modelName);
  checkGraph(config, ensembleScheduling, modelName);
}

/** Settings of a model that has instances. */
function checkForeignSettings(config: ModelConfig, modelName: string): void {
  if (config.optimization) {
    refuse(`optimization should not be specified for ensemble '${modelName}'`);
  }
  if (config.modelWarmup.length > 0) {
    refuse(`model_warmup can not be specified for ensemble '${modelName}'`);
  }
  if (config.instanceGroup.length > 0) {
    refuse(`instance group should not be specified for ensemble '${modelName}'`);
  }
}

/** Far more than any ensemble has; it bounds the work of the check. */
const maxSteps = 1000;

function checkSteps({ step }: ModelEnsembling, modelName: string): void {
  if (step.length === 0) refuse(`must specify 'step' for ensemble '${modelName}'`);
  if (step.length > maxSteps) {
    refuse(`ensemble '${modelName}' has ${step.length} steps, at most ${maxSteps} are allowed`);
  }
  for (const [i, { modelName: member, inputMap, outputMap }] of step.entries()) {
    const missing =
      member === ""
        ? "model_name"
        : Object.keys(inputMap).length === 0
          ? "input_map"
          : Object.keys(outputMap).length === 0
            ? "output_map"
            : undefined;
    if (missing !== undefined) {
      refuse(`must specify '${missing}' in step ${i} of ensemble '${modelName}'`);
    }
  }
}

/** Every tensor has one origin and some use, and the outputs follow from the inputs. */
function checkGraph(config: ModelConfig, { step }: ModelEnsembling, modelName: string): void {
  const inputs = new Set(config.input.map(({ name }) => name));
  const outputs = new Set(config.output.map(({ name }) => name));
  const read = new Set(step.flatMap(({ inputMap }) => Object.values(inputMap)));
  const written = new Set(inputs);
  for (const [i, { outputMap }] of step.entries()) {
    for (const tensor of Object.values(outputMap)) {
      if (written.has(tensor)) {
        refuse(
          `ensemble tensor '${tensor}' can appear in an output map only once for ensemble '${modelName}' step ${i}`,
        );
      }
      written.add(tensor);
    }
  }
  const unread = [...inputs].find((name) => !read.has(name));
  if (unread !== undefined) {
    refuse(`ensemble input '${unread}' for ensemble '${modelName}' is not used`);
  }
  const unwritten = [...outputs].find((name) => !written.has(name));
  if (unwritten !== undefined) {
    refuse(`ensemble output '${unwritten}' for ensemble '${modelName}' is not used`);
  }
  const blocked = blockedSteps(step, inputs);
  checkOutputs(blocked, outputs, modelName);
  const unconnected =
    [...read].find((name) => !written.has(name)) ??
    [...written].find((name) => !read.has(name) && !outputs.has(name));
  if (unconnected !== undefined) {
    refuse(`ensemble tensor '${unconnected}' is unused in ensemble '${modelName}'`);
  }
  const [waiting] = blocked;
  if (waiting) {
    const member = waiting.step.modelName;
    refuse(`in ensemble '${modelName}', step of model '${member}' waits for its own result`);
  }
}

interface BlockedStep {
  readonly step: ModelEnsembling["step"][number];
  /** A tensor that it waits for in vain. */
  readonly tensor: string;
}

/** Steps may be written in any order, but some order has to exist: gives those that could never run. */
function blockedSteps(
  steps: ModelEnsembling["step"],
  inputs: ReadonlySet<string>,
): readonly BlockedStep[] {
  const known = new Set(inputs);
  let waiting = steps;
  for (let before = -1; before !== waiting.length;) {
    before = waiting.length;
    waiting = waiting.filter((step) => {
      if (!Object.values(step.inputMap).every((tensor) => known.has(tensor))) return true;
      for (const tensor of Object.values(step.outputMap)) known.add(tensor);
      return false;
    });
  }
  return waiting.map((step) => ({
    step,
    tensor: Object.values(step.inputMap).find((tensor) => !known.has(tensor)) ?? "",
  }));
}

function checkOutputs(
  blocked: readonly BlockedStep[],
  outputs: ReadonlySet<string>,
  modelName: string,
): void {
  for (const { step, tensor } of blocked) {
    const output = Object.values(step.outputMap).find((written) => outputs.has(written));
    if (output === undefined) continue;
    refuse(
      `output '${output}' for ensemble '${modelName}' is not written: at least one of its depending tensors, '${tensor}', is not connected`,
    );
  }
}
