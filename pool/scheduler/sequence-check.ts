import { configDatatype, datatypeOfConfig, type Datatype } from "../../protocol/datatype.ts";
import { invalidArgument } from "../../protocol/error.ts";
import type { TensorMetadata } from "../../protocol/metadata.ts";
import type { ModelConfig, SequenceState } from "../../protocol/model-config.ts";
import { shapeMatches, shapeText } from "../../protocol/shape.ts";
import type { GraphFinding } from "../probe/graph-finding.ts";
import { controlInputs, type ControlInput } from "./sequence-controls.ts";

/**
 * Throws INVALID_ARG when a graph cannot take the control inputs and states that its config promises, in the reference's
 * words where it has any. That the graph has tensors of these names is known.
 */
export function checkSequenceTensors(config: ModelConfig, graph: GraphFinding): void {
  const { sequenceBatching } = config;
  if (!sequenceBatching) return;
  for (const control of controlInputs(sequenceBatching, config.maxBatchSize > 0)) {
    checkControl(config, control, graph.inputs);
  }
  for (const state of sequenceBatching.state) {
    checkState(config, state, { side: "input", name: state.inputName, tensors: graph.inputs });
    checkState(config, state, { side: "output", name: state.outputName, tensors: graph.outputs });
  }
}

function checkControl(
  config: ModelConfig,
  { name, datatype }: ControlInput,
  inputs: readonly TensorMetadata[],
): void {
  const given = inputs.find((input) => input.name === name);
  if (!given) return;
  const subject = `unable to load model '${config.name}', sequence control '${name}'`;
  const dims = config.maxBatchSize > 0 ? given.shape.slice(1) : given.shape;
  if (!shapeMatches([1], dims)) {
    throw invalidArgument(
      `${subject} in model has dims ${shapeText(dims)} but dims [1] is expected`,
    );
  }
  if (given.datatype !== datatype) {
    throw invalidArgument(
      `${subject}, the model expects data-type ${onnxNames[given.datatype] ?? given.datatype} but the ` +
        `model configuration specifies data-type ${configDatatype(datatype)}`,
    );
  }
}

/** Where ONNX has another name for a datatype. */
const onnxNames: Partial<Record<Datatype, string>> = {
  FP16: "FLOAT16",
  FP32: "FLOAT",
  FP64: "DOUBLE",
  BYTES: "STRING",
  BF16: "BFLOAT16",
};

interface GraphSide {
  readonly side: "input" | "output";
  readonly name: string;
  readonly tensors: readonly TensorMetadata[];
}

function checkState(
  config: ModelConfig,
  { dataType, dims }: SequenceState,
  { side, name, tensors }: GraphSide,
): void {
  const given = tensors.find((tensor) => tensor.name === name);
  if (!given) return;
  if (datatypeOfConfig(dataType) !== given.datatype) {
    throw invalidArgument(
      `unable to load model '${config.name}', configuration expects datatype ${dataType} for ${side} state ` +
        `'${name}', model provides ${configDatatype(given.datatype)}`,
    );
  }
  const stated = config.maxBatchSize > 0 ? [-1, ...dims] : dims;
  const known = given.shape.map((dimension, i) => (stated[i] === -1 ? -1 : dimension));
  // The runtime gives no dimensions for a tensor of unknown rank, too: the config is believed.
  if (given.shape.length === 0 || shapeMatches(known, stated)) return;
  throw invalidArgument(
    `unable to load model '${config.name}', configuration expects shape ${shapeText(stated)} for ${side} state ` +
      `'${name}', model provides ${shapeText(given.shape)}`,
  );
}
