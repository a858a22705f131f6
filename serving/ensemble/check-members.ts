import { invalidArgument } from "../../protocol/error.ts";
import type { ModelConfig, ModelInput, ModelOutput } from "../../protocol/model-config.ts";
import { type Shape, shapeText } from "../../protocol/shape.ts";

/**
 * Checks that an ensemble and the models that it is composed of agree about every tensor that passes between them.
 *
 * @param members the config of each step's model, completed
 * @throws INVALID_ARG with the reference's texts
 */
export function checkMembers(config: ModelConfig, members: readonly ModelConfig[]): void {
  const tensors = new Map<string, Declaration>();
  for (const tensor of [...config.input, ...config.output])
    agree(config.name, tensors, tensor.name, declarationOf(tensor, config));
  for (const [i, step] of (config.ensembleScheduling?.step ?? []).entries()) {
    const member = members[i];
    if (!member) continue;
    checkBatchSize(config, member);
    checkInputs(config.name, tensors, step.inputMap, member);
    checkOutputs(config.name, tensors, step.outputMap, member);
  }
}

/** What one model says of a tensor. */
interface Declaration {
  readonly modelName: string;
  readonly dataType: string;
  readonly dims: Shape;
  /** With the batch dimension, if the model has one. */
  readonly shape: Shape;
}

type Tensors = Map<string, Declaration>;
type TensorMap = Readonly<Record<string, string>>;

function declarationOf(
  { dataType, dims }: ModelInput | ModelOutput,
  { name, maxBatchSize }: ModelConfig,
): Declaration {
  return { modelName: name, dataType, dims, shape: maxBatchSize > 0 ? [-1, ...dims] : dims };
}

function checkBatchSize({ name, maxBatchSize }: ModelConfig, member: ModelConfig): void {
  // A model without batching takes what fits it, or refuses the request.
  if (member.maxBatchSize === 0 || maxBatchSize <= member.maxBatchSize) return;
  throw invalidArgument(
    `ensemble ${name} allows maximum batch size ${maxBatchSize}, but it contains model ${member.name} which only allows maximum batch size to be ${member.maxBatchSize}`,
  );
}

function checkInputs(
  ensemble: string,
  tensors: Tensors,
  inputMap: TensorMap,
  member: ModelConfig,
): void {
  for (const [name, tensor] of Object.entries(inputMap)) {
    const input = member.input.find((declared) => declared.name === name);
    if (!input) {
      throw invalidArgument(
        `in ensemble ${ensemble}, ensemble tensor ${tensor} is mapping to non-existing input ${name} in model ${member.name}`,
      );
    }
    agree(ensemble, tensors, tensor, declarationOf(input, member));
  }
  const open = member.input.find(
    ({ name, optional }) => !optional && !Object.hasOwn(inputMap, name),
  );
  if (open) {
    throw invalidArgument(
      `in ensemble ${ensemble}, input ${open.name} in model ${member.name} is not mapped to any ensemble tensors`,
    );
  }
}

function checkOutputs(
  ensemble: string,
  tensors: Tensors,
  outputMap: TensorMap,
  member: ModelConfig,
): void {
  for (const [name, tensor] of Object.entries(outputMap)) {
    const output = member.output.find((declared) => declared.name === name);
    if (!output) {
      throw invalidArgument(
        `in ensemble ${ensemble}, ensemble tensor ${tensor} is mapped from non-existing output ${name} in model ${member.name}`,
      );
    }
    agree(ensemble, tensors, tensor, declarationOf(output, member));
  }
}

/** Whoever speaks of a tensor first declares it; all others must agree. */
function agree(ensemble: string, tensors: Tensors, tensor: string, given: Declaration): void {
  const known = tensors.get(tensor);
  if (!known) {
    tensors.set(tensor, given);
    return;
  }
  if (known.dataType !== given.dataType)
    throw inconsistent(ensemble, tensor, "data type", [
      [known.dataType, known.modelName],
      [given.dataType, given.modelName],
    ]);
  // A model without batching may say in its dims what a batching one says by its batch dimension.
  if (!alike(known.dims, given.dims) && !alike(known.shape, given.shape))
    throw inconsistent(ensemble, tensor, "shape", [
      [shapeText(known.shape), known.modelName],
      [shapeText(given.shape), given.modelName],
    ]);
}

/** What is variable on either side is for each request to show. */
function alike(left: Shape, right: Shape): boolean {
  return (
    left.length === right.length &&
    left.every((dimension, i) => dimension === -1 || right[i] === -1 || dimension === right[i])
  );
}

function inconsistent(
  ensemble: string,
  tensor: string,
  what: string,
  said: readonly (readonly [value: string, modelName: string])[],
): Error {
  const inferred = said.map(([value, modelName]) => `${value} is inferred from model ${modelName}`);
  return invalidArgument(
    `in ensemble ${ensemble}, ensemble tensor ${tensor}: inconsistent ${what}: ${inferred.join(" while ")}`,
  );
}
