import type { RequestedOutput } from "../../protocol/inference.ts";
import type { ModelConfig } from "../../protocol/model-config.ts";
import type { Shape } from "../../protocol/shape.ts";
import type { RunningVersion } from "../running-version.ts";

/** An ensemble's tensor, and what a step's model calls it. */
export interface TensorLink {
  readonly tensor: string;
  readonly name: string;
}

export interface InputLink extends TensorLink {
  /** As the model declares it, without a batch dimension. */
  readonly dims: Shape;
}

/** One step as it is run. */
export interface StepPlan {
  readonly member: RunningVersion;
  readonly inputs: readonly InputLink[];
  /** The tensors that it waits for, each once. */
  readonly waitsFor: readonly string[];
  /** Those that anybody needs. */
  readonly outputs: readonly TensorLink[];
  readonly requested: readonly RequestedOutput[];
}

/** The steps that make certain outputs of an ensemble, and who waits for each tensor. */
export interface EnsemblePlan {
  readonly steps: readonly StepPlan[];
  readonly readers: ReadonlyMap<string, readonly StepPlan[]>;
}

/**
 * Works out what has to run for the outputs that are asked for: steps whose results nobody needs are left out.
 *
 * @param members the version that runs each step
 */
export function planEnsemble(
  config: ModelConfig,
  members: readonly RunningVersion[],
  outputs: readonly string[],
): EnsemblePlan {
  const all = (config.ensembleScheduling?.step ?? []).flatMap((step, i) => {
    const member = members[i];
    return member ? [{ step, member }] : [];
  });
  const needed = new Set(outputs);
  const chosen = new Set<(typeof all)[number]>();
  for (let found = -1; found !== chosen.size;) {
    found = chosen.size;
    for (const one of all) {
      if (!Object.values(one.step.outputMap).some((tensor) => needed.has(tensor))) continue;
      chosen.add(one);
      for (const tensor of Object.values(one.step.inputMap)) needed.add(tensor);
    }
  }
  const steps = all
    .filter((one) => chosen.has(one))
    .map(({ step, member }) => stepPlan(step, member, needed));
  const links = steps.flatMap((step) => step.waitsFor.map((tensor) => ({ tensor, step })));
  const readers = new Map(
    [...Map.groupBy(links, ({ tensor }) => tensor)].map(([tensor, ofTensor]) => [
      tensor,
      ofTensor.map(({ step }) => step),
    ]),
  );
  return { steps, readers };
}

type Step = NonNullable<ModelConfig["ensembleScheduling"]>["step"][number];

function stepPlan(
  { inputMap, outputMap }: Step,
  member: RunningVersion,
  needed: ReadonlySet<string>,
): StepPlan {
  const dims = new Map(member.model.config.input.map((input) => [input.name, input.dims]));
  const inputs = Object.entries(inputMap).map(([name, tensor]) => ({
    name,
    tensor,
    dims: dims.get(name) ?? [],
  }));
  const outputs = Object.entries(outputMap)
    .map(([name, tensor]) => ({ name, tensor }))
    .filter(({ tensor }) => needed.has(tensor));
  return {
    member,
    inputs,
    waitsFor: [...new Set(inputs.map(({ tensor }) => tensor))],
    outputs,
    requested: outputs.map(({ name }) => ({ name })),
  };
}
