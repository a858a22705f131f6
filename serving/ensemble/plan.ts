import type { RequestedOutput } from "../../protocol/inference.ts";
import type { ModelConfig } from "../../protocol/model-config.ts";
import type { Shape } from "../../protocol/shape.ts";
import type { RunningVersion } from "../running-version.ts";
import { isDecoupled } from "./is-decoupled.ts";

/** An ensemble's tensor, by its place among all, and what somebody calls it. */
export interface TensorLink {
  readonly tensor: number;
  readonly name: string;
}

/** With the dimensions that are declared for it, without a batch dimension. */
export interface ShapedLink extends TensorLink {
  readonly dims: Shape;
}

/** One step as it is run. */
export interface StepPlan {
  /** Its place among the steps of the plan. */
  readonly index: number;
  readonly member: RunningVersion;
  readonly inputs: readonly ShapedLink[];
  /** Those that anybody needs. */
  readonly outputs: readonly TensorLink[];
  readonly requested: readonly RequestedOutput[];
  /** Of one that answers many times: what each of its responses goes on through. */
  readonly behind?: EnsemblePlan;
}

/**
 * The steps that make certain outputs of an ensemble, and who waits for each tensor. Where one of the steps answers many
 * times the outputs are those of the plan behind it.
 */
export interface EnsemblePlan {
  readonly inputs: readonly TensorLink[];
  readonly outputs: readonly ShapedLink[];
  readonly steps: readonly StepPlan[];
  /** Those that wait for nothing but the request. */
  readonly first: readonly StepPlan[];
  /** For each step, how many tensors it waits for that other steps make. */
  readonly missing: readonly number[];
  /** For each tensor, the steps that wait for it. */
  readonly readers: readonly (readonly StepPlan[])[];
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
  const { chosen, needed } = choose(config, members, outputs);
  const tensors = new Map<string, number>();
  const placeOf = (tensor: string): number => {
    const place = tensors.get(tensor) ?? tensors.size;
    tensors.set(tensor, place);
    return place;
  };
  const inputs = config.input.map(({ name }) => ({ name, tensor: placeOf(name) }));
  const ends = config.output
    .filter(({ name }) => outputs.includes(name))
    .map(({ name, dims }) => ({ name, dims, tensor: placeOf(name) }));
  return planSteps(chosen, inputs, { needed, placeOf, ends });
}

interface WholePlan {
  /** All tensors that anybody needs. */
  readonly needed: ReadonlySet<string>;
  readonly placeOf: (tensor: string) => number;
  readonly ends: readonly ShapedLink[];
}

function planSteps(
  chosen: readonly BoundStep[],
  inputs: readonly TensorLink[],
  whole: WholePlan,
): EnsemblePlan {
  const { needed, placeOf, ends } = whole;
  const given = new Set(inputs.map(({ tensor }) => tensor));
  const [before, behind] = apart(chosen, given, placeOf);
  const steps = before.map((one, index): StepPlan => {
    const plan = stepPlan(one, index, needed, placeOf);
    const streams = isDecoupled(one.member.model.config);
    return streams ? { ...plan, behind: planSteps(behind, plan.outputs, whole) } : plan;
  });
  const waitsFor = steps.map(
    (step) => new Set(step.inputs.flatMap(({ tensor }) => (given.has(tensor) ? [] : tensor))),
  );
  const places = [...new Set(steps.flatMap((step) => step.outputs.map(({ tensor }) => tensor)))];
  const readers: (readonly StepPlan[])[] = [];
  for (const tensor of places)
    readers[tensor] = steps.filter(({ index }) => waitsFor[index]?.has(tensor));
  return {
    inputs,
    outputs: ends,
    steps,
    first: steps.filter(({ index }) => waitsFor[index]?.size === 0),
    missing: waitsFor.map(({ size }) => size),
    readers,
  };
}

/** The steps that run once, with the one that answers many times, and those behind that. */
function apart(
  chosen: readonly BoundStep[],
  given: ReadonlySet<number>,
  placeOf: (tensor: string) => number,
): readonly [before: readonly BoundStep[], behind: readonly BoundStep[]] {
  const once = new Set(given);
  const before = new Set<BoundStep>();
  for (let found = -1; found !== before.size;) {
    found = before.size;
    for (const one of chosen) {
      const { inputMap, outputMap } = one.step;
      if (!Object.values(inputMap).every((tensor) => once.has(placeOf(tensor)))) continue;
      before.add(one);
      if (isDecoupled(one.member.model.config)) continue;
      for (const tensor of Object.values(outputMap)) once.add(placeOf(tensor));
    }
  }
  return [chosen.filter((one) => before.has(one)), chosen.filter((one) => !before.has(one))];
}

type Step = NonNullable<ModelConfig["ensembleScheduling"]>["step"][number];

interface BoundStep {
  readonly step: Step;
  readonly member: RunningVersion;
}

/** The steps that have to run, and all tensors that are needed. */
function choose(
  config: ModelConfig,
  members: readonly RunningVersion[],
  outputs: readonly string[],
): { readonly chosen: readonly BoundStep[]; readonly needed: ReadonlySet<string> } {
  const all = (config.ensembleScheduling?.step ?? []).flatMap((step, i) => {
    const member = members[i];
    return member ? [{ step, member }] : [];
  });
  const needed = new Set(outputs);
  const chosen = new Set<BoundStep>();
  for (let found = -1; found !== chosen.size;) {
    found = chosen.size;
    for (const one of all) {
      if (!Object.values(one.step.outputMap).some((tensor) => needed.has(tensor))) continue;
      chosen.add(one);
      for (const tensor of Object.values(one.step.inputMap)) needed.add(tensor);
    }
  }
  return { chosen: all.filter((one) => chosen.has(one)), needed };
}

function stepPlan(
  { step: { inputMap, outputMap }, member }: BoundStep,
  index: number,
  needed: ReadonlySet<string>,
  placeOf: (tensor: string) => number,
): StepPlan {
  const dims = new Map(member.model.config.input.map((input) => [input.name, input.dims]));
  const outputs = Object.entries(outputMap)
    .filter(([, tensor]) => needed.has(tensor))
    .map(([name, tensor]) => ({ name, tensor: placeOf(tensor) }));
  return {
    index,
    member,
    inputs: Object.entries(inputMap).map(([name, tensor]) => ({
      name,
      tensor: placeOf(tensor),
      dims: dims.get(name) ?? [],
    })),
    outputs,
    requested: outputs.map(({ name }) => ({ name })),
  };
}
