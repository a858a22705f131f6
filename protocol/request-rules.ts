import { byteSize, datatypeOfConfig } from "./datatype.ts";
import type { Datatype } from "./datatype.ts";
import type { ServedModel } from "./served-model.ts";
import type { ModelConfig, ModelInput } from "./model-config.ts";
import type { Shape } from "./shape.ts";

/** What a model version demands of one input. */
export interface InputRule {
  readonly name: string;
  readonly modelName: string;
  readonly datatype: Datatype | undefined;
  /** With the leading -1 of a batching model. */
  readonly shape: Shape;
  /** Bytes of one element; 0 for BYTES. */
  readonly elementBytes: number;
  /** Its first dimension is the batch. */
  readonly batched: boolean;
  readonly optional: boolean;
}

/** What a model version demands of a request, worked out once from its config. */
export interface RequestRules {
  readonly modelName: string;
  readonly inputs: ReadonlyMap<string, InputRule>;
  readonly requiredCount: number;
  readonly outputs: ReadonlySet<string>;
  /** Items a request may hold; infinite where oversized ones are split. */
  readonly maxBatchSize: number;
  /** The control input that tells the model the correlation id of a sequence. */
  readonly correlationId?: { readonly name: string; readonly datatype: Datatype };
}

const rulesOf = new WeakMap<ServedModel, RequestRules>();

/** The rules of a version, compiled when they are asked for the first time. */
export function requestRules(model: ServedModel): RequestRules {
  let rules = rulesOf.get(model);
  if (!rules) {
    rules = compile(model);
    rulesOf.set(model, rules);
  }
  return rules;
}

function compile(model: ServedModel): RequestRules {
  const { config } = model;
  const batching = config.maxBatchSize > 0;
  const inputs = config.input.map((input) => inputRule(model.name, input, batching));
  const correlationId = correlationIdRule(config);
  return {
    modelName: model.name,
    inputs: new Map(inputs.map((rule) => [rule.name, rule])),
    requiredCount: inputs.filter((rule) => !rule.optional).length,
    outputs: new Set(config.output.map((output) => output.name)),
    maxBatchSize: model.splitOversizedBatches ? Infinity : config.maxBatchSize,
    ...(correlationId && { correlationId }),
  };
}

function correlationIdRule({ sequenceBatching }: ModelConfig): RequestRules["correlationId"] {
  for (const { name, control } of sequenceBatching?.controlInput ?? []) {
    const signal = control.find(({ kind }) => kind === "CONTROL_SEQUENCE_CORRID");
    const datatype = signal && datatypeOfConfig(signal.dataType);
    if (datatype) return { name, datatype };
  }
  return undefined;
}

function inputRule(modelName: string, input: ModelInput, batching: boolean): InputRule {
  const datatype = datatypeOfConfig(input.dataType);
  // A shape tensor says how the others look, once for the whole batch.
  const batched = batching && !input.isShapeTensor;
  return {
    name: input.name,
    modelName,
    datatype,
    shape: batched ? [-1, ...input.dims] : input.dims,
    elementBytes: datatype ? byteSize(datatype) : 0,
    batched,
    optional: input.optional,
  };
}
