import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { ParameterValue } from "../../protocol/parameters.ts";
import { WireReader } from "./wire-reader.ts";

/** Parameters as they came; undefined stands for one that was sent without a value. */
export type WireParameters = Map<string, ParameterValue | undefined>;

/** A `ModelInferRequest` as it came: read, and not understood yet. */
export interface RequestMessage {
  modelName: string;
  modelVersion: string;
  id: string;
  parameters: WireParameters | undefined;
  readonly inputs: InputMessage[];
  readonly outputs: OutputMessage[];
  /** Views on the message. */
  readonly rawInputContents: Buffer[];
}

export interface InputMessage {
  name: string;
  /** Any text that a client may send. */
  datatype: string;
  readonly shape: number[];
  parameters: WireParameters | undefined;
  /** The encoded `InferTensorContents`, in pieces that count as one message; undefined when there was none. */
  contents: Buffer[] | undefined;
}

export interface OutputMessage {
  name: string;
  parameters: WireParameters | undefined;
}

/** So many entries a list may have: an empty one costs a client two bytes, and the server a hundred. */
const longestList = 16_384;

/** Reads a `ModelInferRequest`; throws INTERNAL when it is not one. */
export function readRequest(bytes: Buffer): RequestMessage {
  const reader = new WireReader(bytes);
  const message: RequestMessage = {
    modelName: "",
    modelVersion: "",
    id: "",
    parameters: undefined,
    inputs: [],
    outputs: [],
    rawInputContents: [],
  };
  while (!reader.done) readRequestField(reader, message);
  return message;
}

function readRequestField(reader: WireReader, message: RequestMessage): void {
  const tag = reader.tag();
  switch (tag) {
    case 0x0a:
      message.modelName = reader.string();
      break;
    case 0x12:
      message.modelVersion = reader.string();
      break;
    case 0x1a:
      message.id = reader.string();
      break;
    case 0x22:
      message.parameters = readEntry(reader, message.parameters);
      break;
    case 0x2a:
      append(message.inputs, readInput(reader), "inputs");
      break;
    case 0x32:
      append(message.outputs, readOutput(reader), "outputs");
      break;
    case 0x3a:
      append(message.rawInputContents, reader.view(), "raw_input_contents");
      break;
    default:
      reader.skip(tag);
  }
}

function readInput(reader: WireReader): InputMessage {
  const input: InputMessage = {
    name: "",
    datatype: "",
    shape: [],
    parameters: undefined,
    contents: undefined,
  };
  const outer = reader.enter();
  while (!reader.done) readInputField(reader, input);
  reader.leave(outer);
  return input;
}

function readInputField(reader: WireReader, input: InputMessage): void {
  const tag = reader.tag();
  switch (tag) {
    case 0x0a:
      input.name = reader.string();
      break;
    case 0x12:
      input.datatype = reader.string();
      break;
    case 0x18:
      append(input.shape, reader.number(), "shape");
      break;
    case 0x1a:
      readPackedShape(reader, input.shape);
      break;
    case 0x22:
      input.parameters = readEntry(reader, input.parameters);
      break;
    case 0x2a:
      input.contents ??= [];
      append(input.contents, reader.view(), "contents");
      break;
    default:
      reader.skip(tag);
  }
}

function readPackedShape(reader: WireReader, shape: number[]): void {
  const outer = reader.enter();
  while (!reader.done) append(shape, reader.number(), "shape");
  reader.leave(outer);
}

function readOutput(reader: WireReader): OutputMessage {
  const output: OutputMessage = { name: "", parameters: undefined };
  const outer = reader.enter();
  while (!reader.done) {
    const tag = reader.tag();
    if (tag === 0x0a) output.name = reader.string();
    else if (tag === 0x12) output.parameters = readEntry(reader, output.parameters);
    else reader.skip(tag);
  }
  reader.leave(outer);
  return output;
}

/** Reads one entry of a map of parameters; of two with one key the last one counts. */
function readEntry(reader: WireReader, before: WireParameters | undefined): WireParameters {
  const parameters: WireParameters = before ?? new Map();
  let key = "";
  let value: ParameterValue | undefined;
  const outer = reader.enter();
  while (!reader.done) {
    const tag = reader.tag();
    if (tag === 0x0a) key = reader.string();
    else if (tag === 0x12) value = readParameter(reader, value);
    else reader.skip(tag);
  }
  reader.leave(outer);
  if (parameters.size >= longestList) throw tooLong("parameters");
  return parameters.set(key, value);
}

/** Reads an `InferParameter`, which of several values holds the last. */
function readParameter(
  reader: WireReader,
  before: ParameterValue | undefined,
): ParameterValue | undefined {
  let value = before;
  const outer = reader.enter();
  while (!reader.done) {
    const tag = reader.tag();
    if (tag === 0x08) value = reader.bool();
    else if (tag === 0x10) value = reader.int64();
    else if (tag === 0x1a) value = reader.string();
    else if (tag === 0x21) value = reader.double();
    else if (tag === 0x28) value = reader.uint64();
    else reader.skip(tag);
  }
  reader.leave(outer);
  return value;
}

function append<Item>(list: Item[], item: Item, field: string): void {
  if (list.length >= longestList) throw tooLong(field);
  list.push(item);
}

function tooLong(field: string): InferenceError {
  return new InferenceError(
    StatusCode.InvalidArg,
    `inference request: given more than ${longestList} ${field}, expected at most so many`,
  );
}
