import { datatypeOfConfig } from "../../protocol/datatype.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { TensorMetadata } from "../../protocol/metadata.ts";
import type {
  BatchInput,
  ModelConfig,
  ModelInput,
  ModelOutput,
} from "../../protocol/model-config.ts";
import { shapeMatches, shapeText, type Shape } from "../../protocol/shape.ts";
import type { GraphFinding } from "../probe/graph-finding.ts";

type TypedTensor = { readonly name: string; readonly dataType: string };

type ConfigTensor = TypedTensor & {
  readonly dims: Shape;
  readonly reshape?: { readonly shape: Shape };
};

/** Throws INVALID_ARG when a config and the graph it is for disagree about a tensor, in the reference's words. */
export function checkOnnx(config: ModelConfig, finding: GraphFinding): void {
  checkAllInputsStated(config, finding);
  for (const input of config.input) checkInput(config, input, finding.inputs);
  for (const batchInput of config.batchInput) checkBatchInput(config, batchInput, finding.inputs);
  for (const output of config.output) checkOutput(config, output, finding.outputs);
  for (const { name } of stateTensors(config, "inputName")) find("input", name, finding.inputs);
  for (const { name } of stateTensors(config, "outputName")) find("output", name, finding.outputs);
  for (const { name } of config.sequenceBatching?.controlInput ?? [])
    checkControl(config, name, finding);
}

function stateTensors(
  config: ModelConfig,
  side: "inputName" | "outputName",
): readonly { readonly name: string }[] {
  return (config.sequenceBatching?.state ?? []).map((state) => ({ name: state[side] }));
}

function checkAllInputsStated(config: ModelConfig, finding: GraphFinding): void {
  const stated = new Set([
    ...config.input.map(({ name }) => name),
    ...config.batchInput.flatMap(({ targetName }) => targetName),
    ...(config.sequenceBatching?.controlInput ?? []).map(({ name }) => name),
    ...stateTensors(config, "inputName").map(({ name }) => name),
  ]);
  // Where they are as many, the one that the graph does not have tells more.
  if (finding.inputs.length === stated.size) return;
  if (finding.inputs.every(({ name }) => stated.has(name))) return;
  throw new InferenceError(
    StatusCode.InvalidArg,
    `unable to load model '${config.name}', configuration expects ${stated.size} inputs, ` +
      `model provides ${finding.inputs.length}`,
  );
}

function checkInput(
  config: ModelConfig,
  input: ModelInput,
  graph: readonly TensorMetadata[],
): void {
  const given = checkDatatype(config, "input", input, graph);
  if (!input.allowRaggedBatch) checkShape(config, input, given);
  else if (input.optional || !isVector(given)) {
    const found = input.optional
      ? ", which is not supported for optional input"
      : `, model provides ${shapeText(given.shape)}`;
    throw new InferenceError(
      StatusCode.InvalidArg,
      `unable to load model '${config.name}', configuration expects model provides input with shape [-1] for ragged ` +
        `input '${input.name}'${found}`,
    );
  }
}

/** What the server makes has to be of the graph's datatype and rank; the reference only finds out when it runs. */
function checkBatchInput(
  config: ModelConfig,
  { kind, targetName, dataType }: BatchInput,
  graph: readonly TensorMetadata[],
): void {
  const rank = kind === "BATCH_ITEM_SHAPE" ? 2 : 1;
  for (const name of targetName) {
    const { shape } = checkDatatype(config, "input", { name, dataType }, graph);
    if (shape.length === rank && shape[0] === -1) continue;
    throw new InferenceError(
      StatusCode.InvalidArg,
      `unable to load model '${config.name}', batch input kind '${kind}' expects ${rank} dimensions, the first of them ` +
        `variable, for input '${name}', model provides ${shapeText(shape)}`,
    );
  }
  if (kind.startsWith("BATCH_ITEM_SHAPE") && config.maxBatchSize === 0) {
    throw new InferenceError(
      StatusCode.InvalidArg,
      `unable to load model '${config.name}', batch input kind '${kind}' expects a model with batching`,
    );
  }
}

function checkOutput(
  config: ModelConfig,
  output: ModelOutput,
  graph: readonly TensorMetadata[],
): void {
  const given = checkDatatype(config, "output", output, graph);
  // One that is taken apart by the shapes of an input need not look like what becomes of it.
  if (config.batchOutput.some(({ targetName }) => targetName.includes(output.name))) return;
  checkShape(config, output, given);
}

function isVector({ shape }: TensorMetadata): boolean {
  return shape.length === 1 && shape[0] === -1;
}

function checkDatatype(
  config: ModelConfig,
  direction: "input" | "output",
  stated: TypedTensor,
  graph: readonly TensorMetadata[],
): TensorMetadata {
  const given = find(direction, stated.name, graph);
  if (datatypeOfConfig(stated.dataType) !== given.datatype) {
    throw new InferenceError(
      StatusCode.InvalidArg,
      `unable to load model '${config.name}', configuration expects datatype ${stated.dataType} for ${direction} ` +
        `'${stated.name}', model provides TYPE_${given.datatype === "BYTES" ? "STRING" : given.datatype}`,
    );
  }
  return given;
}

function checkShape(config: ModelConfig, stated: ConfigTensor, given: TensorMetadata): void {
  // The runtime gives no dimensions for a tensor of unknown rank, too: the config is believed.
  if (given.shape.length > 0) checkDims(config, stated, given);
  else if (stated.dims.some((dimension) => dimension !== 1) && config.maxBatchSize === 0) {
    throw new InferenceError(
      StatusCode.InvalidArg,
      `unable to load model '${config.name}', scalar tensor '${stated.name}', should only provide 1 in the model ` +
        `configuration when the model doesn't support batching. Model configuration provided: ${shapeText(stated.dims)}.`,
    );
  }
}

function find(
  direction: "input" | "output",
  name: string,
  graph: readonly TensorMetadata[],
): TensorMetadata {
  const found = graph.find((tensor) => tensor.name === name);
  if (found) return found;
  const allowed = graph.map((tensor) => tensor.name).join(", ");
  const text = `unexpected inference ${direction} '${name}', allowed ${direction}s are: ${allowed}`;
  throw new InferenceError(StatusCode.InvalidArg, text);
}

function checkDims(config: ModelConfig, stated: ConfigTensor, { shape }: TensorMetadata): void {
  const subject = `model '${config.name}', tensor '${stated.name}': `;
  const own = stated.reshape?.shape ?? stated.dims;
  const full = config.maxBatchSize > 0 ? [-1, ...own] : own;
  if (config.maxBatchSize > 0 && shape[0] !== -1) {
    throw new InferenceError(
      StatusCode.InvalidArg,
      `${subject}for the model to support batching the shape should have at least 1 dimension and the first dimension ` +
        `must be -1; but shape expected by the model is ${shapeText(shape)}`,
    );
  }
  if (shape.length !== full.length) {
    throw new InferenceError(
      StatusCode.InvalidArg,
      `${subject}the model expects ${shape.length} dimensions (shape ${shapeText(shape)}) but the model configuration ` +
        `specifies ${full.length} dimensions (${config.maxBatchSize > 0 ? "an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape" : "shape"} ${shapeText(full)})`,
    );
  }
  if (!fits(shape, full)) {
    throw new InferenceError(
      StatusCode.InvalidArg,
      `${subject}the model expects shape ${shapeText(shape)} but the model configuration specifies shape ${shapeText(full)}`,
    );
  }
}

/** A dimension that is variable on either side fits any. */
function fits(graph: Shape, stated: Shape): boolean {
  return shapeMatches(
    graph.map((dimension, i) => (stated[i] === -1 ? -1 : dimension)),
    stated,
  );
}

function checkControl(config: ModelConfig, name: string, finding: GraphFinding): void {
  if (finding.inputs.some((input) => input.name === name)) return;
  const text = `configuration specified sequence control '${name}', but model does not provide that input`;
  throw new InferenceError(StatusCode.InvalidArg, `unable to load model '${config.name}': ${text}`);
}
