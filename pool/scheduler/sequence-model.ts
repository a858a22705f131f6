import type {
  ModelConfig,
  ModelInput,
  ModelSequenceBatching,
  SequenceState,
} from "../../protocol/model-config.ts";
import { readInitialStates } from "./implicit-state-files.ts";
import { implicitStates, type ImplicitStates } from "./implicit-state.ts";
import { controlInputs, type ControlInput } from "./sequence-controls.ts";

/** A model as the sequence batcher sees it, worked out once from its config. */
export interface SequenceModel {
  /** With the states among the inputs: requests whose states differ in shape never share a batch. */
  readonly config: ModelConfig;
  readonly batching: ModelSequenceBatching;
  readonly controls: readonly ControlInput[];
  readonly states: ImplicitStates;
}

/**
 * Works out which tensors a model with `sequence_batching` is given beside those of its clients, and reads what its
 * states begin with; undefined for any other model. Throws INVALID_ARG.
 */
export async function readSequenceModel(
  config: ModelConfig,
  modelDirectory: string,
): Promise<SequenceModel | undefined> {
  const { sequenceBatching } = config;
  if (!sequenceBatching) return undefined;
  const initialStates = await readInitialStates(sequenceBatching.state, modelDirectory);
  return sequenceModel(config, sequenceBatching, initialStates);
}

/**
 * The same without reading anything.
 *
 * @param initialStates by input name: what the states begin with that do not begin as zeros
 */
export function sequenceModel(
  config: ModelConfig,
  batching: ModelSequenceBatching,
  initialStates: ReadonlyMap<string, Uint8Array>,
): SequenceModel {
  const isBatched = config.maxBatchSize > 0;
  return {
    config: { ...config, input: [...config.input, ...batching.state.map(stateInput)] },
    batching,
    controls: controlInputs(batching, isBatched),
    states: implicitStates(batching, isBatched, initialStates),
  };
}

/**
 * The config without those inputs that clients do not give, and without the state outputs where a graph has named the
 * outputs: a state is an output for clients only when the config says so itself.
 */
export function withoutSequenceTensors(config: ModelConfig, given: ModelConfig): ModelConfig {
  const { sequenceBatching } = config;
  if (!sequenceBatching) return config;
  const { controlInput, state } = sequenceBatching;
  const inputs = new Set([...controlInput, ...state].map(nameOfInput));
  const outputs = new Set(given.output.length > 0 ? [] : state.map(({ outputName }) => outputName));
  return {
    ...config,
    input: config.input.filter(({ name }) => !inputs.has(name)),
    output: config.output.filter(({ name }) => !outputs.has(name)),
  };
}

function nameOfInput(tensor: { readonly name: string } | SequenceState): string {
  return "name" in tensor ? tensor.name : tensor.inputName;
}

function stateInput({ inputName, dataType, dims }: SequenceState): ModelInput {
  return {
    name: inputName,
    dataType,
    dims,
    format: "FORMAT_NONE",
    isShapeTensor: false,
    allowRaggedBatch: false,
    optional: false,
    isNonLinearFormatIo: false,
  };
}
