import { BinaryTail } from "./binary-data.ts";
import { isDatatype } from "./datatype.ts";
import type { Datatype } from "./datatype.ts";
import { invalidArgument } from "./error.ts";
import type { InferenceRequest, RequestedOutput } from "./inference.ts";
import { asArray, asBoolean, asString, asUnsigned, member, requiredMember } from "./json-access.ts";
import { decodeJson, readJson } from "./json-text.ts";
import type { JsonDocument } from "./json-text.ts";
import type { Parameters } from "./parameters.ts";
import { RememberedHeads } from "./remembered-heads.ts";
import { requestParameters } from "./request-parameters.ts";
import { dimensionBound, isDimension } from "./shape.ts";
import type { Shape } from "./shape.ts";
import { type MemorySlice, type RequestMemory, unknownRegion } from "./shared-memory.ts";
import { tensorFromJson } from "./tensor-from-json.ts";
import type { Tensor } from "./tensor.ts";

/** What is known of a request besides its body: what its path and headers say, and the memory that it may use. */
export interface RequestTarget {
  readonly modelName: string;
  /** "" where the path has none. */
  readonly modelVersion: string;
  /** Headers that the server forwards as parameters. */
  readonly forwarded: Parameters;
  /** Without it every region is unknown. */
  readonly memory?: RequestMemory | undefined;
}

/** The outputs that the client wants as binary data behind the JSON. */
export type BinaryOutputs = "all" | ReadonlySet<string>;

/** A request as it came over HTTP, and how it wants its answer. */
export interface ParsedInfer {
  readonly request: InferenceRequest;
  readonly binaryOutputs: BinaryOutputs;
}

/** Reads the JSON head of an infer request; tensors with binary data are views on the tail. */
export function parseInfer(head: Uint8Array, tail: Uint8Array, target: RequestTarget): ParsedInfer {
  const text = decodeJson(head);
  // Forwarded headers become parameters, so that equal heads would make unequal requests.
  const plain = target.forwarded.size === 0 && tail.length > 0;
  const known = plain ? heads.recall(text, tail) : undefined;
  if (known) {
    const [request, binaryOutputs] = known;
    const { modelName, modelVersion } = target;
    return { request: { ...request, modelName, modelVersion }, binaryOutputs };
  }
  return readJson(text, (document) => {
    const parsed = parseDocument(document, new BinaryTail(tail), target);
    if (plain && !target.memory?.hasOutputs && cameBehind(tail, parsed.request)) {
      heads.keep(text, parsed.request, parsed.binaryOutputs);
    }
    return parsed;
  });
}

const heads = new RememberedHeads<BinaryOutputs>();

/** True when every tensor is a piece of the tail. */
function cameBehind(tail: Uint8Array, { inputs }: InferenceRequest): boolean {
  return inputs.every(({ bytes }) => bytes.buffer === tail.buffer && bytes.length > 0);
}

function parseDocument(
  document: JsonDocument,
  tail: BinaryTail,
  target: RequestTarget,
): ParsedInfer {
  const { root, exact } = document;
  const { modelName, modelVersion, forwarded, memory } = target;
  const inputs = asArray(requiredMember(root, "inputs"), "Unable to parse 'inputs': ");
  const outputs = asArray(member(root, "outputs") ?? [], "Unable to parse 'outputs': ");
  const id = asString(member(root, "id") ?? "", "Unable to parse 'id': ");
  const parameters = requestParameters(document, forwarded);
  for (const input of inputs) checkDataSource(input);
  const sources = { exact, tail, target };
  const request: InferenceRequest = {
    modelName,
    modelVersion,
    id,
    inputs: inputs.map((input) => inputTensor(input, sources)),
    outputs: outputs.map((output) => requestedOutput(output, memory)),
    parameters: parameters.parameters,
    priority: parameters.priority,
    timeoutMicroseconds: parameters.timeoutMicroseconds,
    ...(parameters.sequence && { sequence: parameters.sequence }),
    ...(parameters.cacheControl && { cacheControl: parameters.cacheControl }),
  };
  if (tail.left > 0) {
    throw invalidArgument(`unexpected additional input data for model '${modelName}'`);
  }
  const all = outputs.length === 0 && parameters.binaryDataOutput;
  return { request, binaryOutputs: all ? "all" : binaryNames(outputs) };
}

/** A tensor's elements come from exactly one place. */
function checkDataSource(input: unknown): void {
  const parameters = member(input, "parameters");
  const data = member(input, "data") !== undefined;
  const binary = member(parameters, "binary_data_size") !== undefined;
  const shared = member(parameters, "shared_memory_region") !== undefined;
  if (Number(data) + Number(binary) + Number(shared) === 1) return;
  const set = `${data ? " 'data'" : ""}${binary ? " 'binary_data_size'" : ""}${shared ? " 'shared_memory_region'" : ""}`;
  throw invalidArgument(
    "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', " +
      `'shared_memory_region' in 'parameters'. But ${set ? `set${set}` : "no field is set"}`,
  );
}

/** Where an input's elements may come from. */
interface InputSources {
  /** The numbers in the JSON are exact. */
  readonly exact: boolean;
  readonly tail: BinaryTail;
  readonly target: RequestTarget;
}

function inputTensor(input: unknown, { exact, tail, target }: InputSources): Tensor {
  const name = asString(requiredMember(input, "name"), "Unable to parse 'name': ");
  const datatype = asDatatype(requiredMember(input, "datatype"), name);
  const shape = asShape(requiredMember(input, "shape"), name);
  const parameters = member(input, "parameters");
  const size = member(parameters, "binary_data_size");
  if (size !== undefined) {
    const expected = asUnsigned(size, "Unable to parse 'binary_data_size': ");
    const bytes = tail.take(expected);
    if (bytes) return { name, datatype, shape, bytes };
    throw invalidArgument(
      `unexpected size for input '${name}', expecting ${expected - tail.left} additional bytes for model '${target.modelName}'`,
    );
  }
  const slice = memorySlice(parameters);
  if (slice) {
    if (!target.memory) throw unknownRegion(slice.region);
    return { name, datatype, shape, bytes: target.memory.input(slice) };
  }
  const data = member(input, "data");
  return { name, datatype, shape, bytes: tensorFromJson({ datatype, shape, data, exact }) };
}

function asDatatype(value: unknown, inputName: string): Datatype {
  const text = asString(value, "Unable to parse 'datatype': ");
  if (isDatatype(text)) return text;
  throw invalidArgument(`invalid datatype for input ${inputName}`);
}

function asShape(value: unknown, inputName: string): Shape {
  const dimensions = asArray(value, "Unable to parse 'shape': ");
  if (dimensions.every(isDimension)) return dimensions;
  const wrong = dimensions.find((dimension) => !isDimension(dimension));
  const given =
    typeof wrong === "number" || typeof wrong === "bigint" ? wrong : `a ${typeof wrong}`;
  throw invalidArgument(
    `invalid shape for input '${inputName}': dimensions must be ${dimensionBound}, got ${given}`,
  );
}

/** The place in shared memory that a tensor's parameters name; undefined where they name none. */
function memorySlice(parameters: unknown): MemorySlice | undefined {
  const region = member(parameters, "shared_memory_region");
  if (region === undefined) return undefined;
  const size = (name: string): number =>
    asUnsigned(member(parameters, name) ?? 0, `Unable to parse '${name}': `);
  return {
    region: asString(region, "Unable to parse 'shared_memory_region': "),
    offset: size("shared_memory_offset"),
    byteSize: size("shared_memory_byte_size"),
  };
}

function requestedOutput(output: unknown, memory: RequestMemory | undefined): RequestedOutput {
  const name = asString(requiredMember(output, "name"), "Unable to parse 'name': ");
  const parameters = member(output, "parameters");
  if (parameters === undefined) return { name };
  const classes = member(parameters, "classification");
  const slice = memorySlice(parameters);
  if (slice) {
    if (classes !== undefined) throw invalidArgument(sharedMemoryConflict("classification"));
    if (wantsBinary(output)) throw invalidArgument(sharedMemoryConflict("binary_data"));
    if (!memory) throw unknownRegion(slice.region);
    memory.output(name, slice);
  }
  const classification = asUnsigned(classes ?? 0, "Unable to set 'classification': ");
  return classification > 0 ? { name, classification } : { name };
}

function sharedMemoryConflict(field: string): string {
  return `Output can't set both 'shared_memory_region' and '${field}'`;
}

function wantsBinary(output: unknown): boolean {
  const wish = member(member(output, "parameters"), "binary_data");
  return asBoolean(wish ?? false, "Unable to parse 'binary_data': ");
}

const noNames: BinaryOutputs = new Set();

function binaryNames(outputs: readonly unknown[]): BinaryOutputs {
  const binary = outputs.filter(wantsBinary);
  if (binary.length === 0) return noNames;
  return new Set(binary.map((output) => String(member(output, "name"))));
}
