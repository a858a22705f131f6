import { checkSequence } from "./check-sequence.ts";
import { checkTensor } from "./check-tensor.ts";
import type { ServedModel } from "./served-model.ts";
import { type InferenceError, invalidArgument } from "./error.ts";
import type { InferenceRequest, RequestedOutput } from "./inference.ts";
import { invalidRequest } from "./request-label.ts";
import { requestRules } from "./request-rules.ts";
import type { RequestRules } from "./request-rules.ts";
import type { Tensor } from "./tensor.ts";

const valid = Symbol("valid");

/** A request that fits the config of the version it names: schedulers and backends take nothing else. */
export interface ValidInferenceRequest extends InferenceRequest {
  readonly [valid]: true;
  /** The version it was checked against. */
  readonly model: ServedModel;
  /** Items in it: the first dimension of every input, or 1 for a model without batching. */
  readonly batchSize: number;
}

/**
 * Checks a request against the config of the version that would run it; throws INVALID_ARG with the reference's texts.
 * Every request passes here: what follows from the config alone is worked out once for a version.
 */
export function validRequest(model: ServedModel, request: InferenceRequest): ValidInferenceRequest {
  const rules = requestRules(model);
  const outputs = checkOutputs(rules, request.outputs);
  const batchSize = checkInputs(rules, request);
  if (request.sequence) checkSequence(rules, request, request.sequence);
  return { ...request, [valid]: true, outputs, model, batchSize };
}

/** The outputs that are asked for, each once. */
function checkOutputs(
  rules: RequestRules,
  outputs: readonly RequestedOutput[],
): readonly RequestedOutput[] {
  for (const { name } of outputs) {
    if (!rules.outputs.has(name)) throw unexpected(rules, `output '${name}'`);
  }
  if (outputs.length < 2) return outputs;
  const once = new Map(outputs.map((output) => [output.name, output]));
  return once.size === outputs.length ? outputs : [...once.values()];
}

/** Returns the batch size. */
function checkInputs(rules: RequestRules, request: InferenceRequest): number {
  const { inputs } = request;
  if (inputs.length < rules.requiredCount || inputs.length > rules.inputs.size) {
    throw wrongInputs(rules, request);
  }
  let required = 0;
  let batchSize = 0;
  for (const [i, input] of inputs.entries()) {
    const rule = rules.inputs.get(input.name);
    if (!rule) throw unexpected(rules, `input '${input.name}'`);
    if (isNamedBefore(inputs, i, input.name)) throw twice(request, input.name);
    if (!rule.optional) required += 1;
    if (rule.batched) batchSize = checkBatch(rules, request, input, batchSize);
    checkTensor(rule, input, request.id);
  }
  if (required < rules.requiredCount) throw wrongInputs(rules, request);
  return batchSize || 1;
}

/** Comparing is faster than a set for as many inputs as models have. */
function isNamedBefore(inputs: readonly Tensor[], end: number, name: string): boolean {
  for (let i = 0; i < end; i += 1) if (inputs[i]?.name === name) return true;
  return false;
}

/** Returns the batch size of all inputs so far; 0 means that none was seen yet. */
function checkBatch(
  rules: RequestRules,
  request: InferenceRequest,
  input: Tensor,
  batchSize: number,
): number {
  const [given] = input.shape;
  const { modelName, maxBatchSize } = rules;
  if (given === undefined) {
    throw invalidRequest(
      request.id,
      `input '${input.name}' has no shape but model requires batch dimension for '${modelName}'`,
    );
  }
  if (batchSize !== 0 && given !== batchSize) {
    throw invalidRequest(
      request.id,
      `input '${input.name}' batch size does not match other inputs for '${modelName}'`,
    );
  }
  if (given > maxBatchSize) {
    throw invalidRequest(
      request.id,
      `inference request batch-size must be <= ${maxBatchSize} for '${modelName}'`,
    );
  }
  if (given === 0) {
    throw invalidRequest(
      request.id,
      `inference request batch-size must be >= 1 for '${modelName}', got 0`,
    );
  }
  return given;
}

function unexpected(rules: RequestRules, subject: string): InferenceError {
  return invalidArgument(`unexpected inference ${subject} for model '${rules.modelName}'`);
}

function twice(request: InferenceRequest, name: string): InferenceError {
  return invalidRequest(request.id, `input '${name}' already exists in request`);
}

/** Too many inputs, too few, or not those that are required. */
function wrongInputs(rules: RequestRules, request: InferenceRequest): InferenceError {
  const given = new Set<string>();
  for (const { name } of request.inputs) {
    if (given.has(name)) return twice(request, name);
    given.add(name);
  }
  const missing = [...rules.inputs.values()].filter(
    (rule) => !rule.optional && !given.has(rule.name),
  );
  const most = rules.inputs.size;
  const expected =
    rules.requiredCount === most
      ? `expected ${most} inputs`
      : `expected number of inputs between ${rules.requiredCount} and ${most}`;
  return invalidRequest(
    request.id,
    `${expected} but got ${given.size} inputs for model '${rules.modelName}'. ` +
      `Got input(s) ${quotedList([...given])}, but missing required input(s) ` +
      `${quotedList(missing.map((rule) => rule.name))}. Please provide all required input(s).`,
  );
}

function quotedList(names: readonly string[]): string {
  return `[${names.map((name) => `'${name}'`).join(",")}]`;
}
