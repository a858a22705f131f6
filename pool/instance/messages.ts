import { datatypes, type Datatype } from "../../protocol/datatype.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { Shape } from "../../protocol/shape.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { InstanceSettings } from "../backend/backend.ts";
import type { FrameReader, FrameWriter } from "./frame.ts";

/** What a new instance thread is given. */
export interface ThreadStart {
  readonly settings: InstanceSettings;
  /** One Int32 that is counted up, and notified, after each message: the thread sleeps on it. */
  readonly doorbell: SharedArrayBuffer;
}

/** The thread's first message; all later ones, both ways, are frames. Tensors in frames go by their place in these lists. */
export type ThreadReady =
  | {
      readonly loaded: true;
      readonly inputs: readonly string[];
      readonly outputs: readonly string[];
    }
  | { readonly loaded: false; readonly code: StatusCode; readonly message: string };

/** A tensor in pieces that still have to be put together. */
export interface TensorParts {
  readonly name: string;
  readonly datatype: Datatype;
  readonly shape: Shape;
  readonly parts: readonly Uint8Array[];
}

/** What the thread is to do at once: one run of the model. */
export interface Execution<Input> {
  readonly id: number;
  readonly inputs: readonly Input[];
  /** Names of the outputs that someone wants. */
  readonly outputs: readonly string[];
}

export type Answer =
  | {
      readonly id: number;
      readonly outputs: readonly Tensor[];
      readonly inputNanoseconds: number;
      readonly inferNanoseconds: number;
    }
  | { readonly id: number; readonly error: InferenceError };

/** Outputs from this size on are handed over instead of copied: below it, the hand-over costs more than the copy. */
const attachBytes = 32_768;

const statusCodes = Object.values(StatusCode);
const noError = -1;

export function writeExecution(
  frame: FrameWriter,
  execution: Execution<TensorParts>,
  inputs: readonly string[],
  outputs: readonly string[],
): void {
  frame.number(execution.id);
  frame.number(execution.inputs.length);
  for (const tensor of execution.inputs) {
    writeHead(frame, tensor, inputs);
    frame.bytes(tensor.parts);
  }
  frame.number(execution.outputs.length);
  for (const name of execution.outputs) frame.number(outputs.indexOf(name));
}

export function readExecution(
  frame: FrameReader,
  inputs: readonly string[],
  outputs: readonly string[],
): Execution<Tensor> {
  const id = frame.number();
  const tensors = readList(frame, () => readTensor(frame, inputs));
  return { id, inputs: tensors, outputs: readList(frame, () => outputs[frame.number()] ?? "") };
}

export function writeAnswer(frame: FrameWriter, answer: Answer, outputs: readonly string[]): void {
  frame.number(answer.id);
  if ("error" in answer) {
    frame.number(statusCodes.indexOf(answer.error.code));
    frame.bytes([new TextEncoder().encode(answer.error.message)]);
    return;
  }
  frame.number(noError);
  frame.number(answer.inputNanoseconds);
  frame.number(answer.inferNanoseconds);
  frame.number(answer.outputs.length);
  for (const tensor of answer.outputs) {
    writeHead(frame, tensor, outputs);
    writeOutputBytes(frame, tensor.bytes);
  }
}

export function readAnswer(frame: FrameReader, outputs: readonly string[]): Answer {
  const id = frame.number();
  const code = frame.number();
  if (code !== noError) {
    const message = new TextDecoder().decode(frame.bytes());
    return { id, error: new InferenceError(statusCodes[code] ?? StatusCode.Internal, message) };
  }
  const inputNanoseconds = frame.number();
  const inferNanoseconds = frame.number();
  return {
    id,
    inputNanoseconds,
    inferNanoseconds,
    outputs: readList(frame, () => readTensor(frame, outputs)),
  };
}

function writeHead(
  frame: FrameWriter,
  tensor: Omit<Tensor, "bytes">,
  names: readonly string[],
): void {
  frame.number(names.indexOf(tensor.name));
  frame.number(datatypes.indexOf(tensor.datatype));
  frame.number(tensor.shape.length);
  for (const dimension of tensor.shape) frame.number(dimension);
}

function writeOutputBytes(frame: FrameWriter, bytes: Uint8Array): void {
  const { buffer, byteLength } = bytes;
  const whole = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
  if (whole && byteLength >= attachBytes) frame.attach(buffer);
  else frame.bytes([bytes]);
}

function readTensor(frame: FrameReader, names: readonly string[]): Tensor {
  const name = names[frame.number()] ?? "";
  const datatype = datatypes[frame.number()] ?? "BYTES";
  return { name, datatype, shape: readList(frame, () => frame.number()), bytes: frame.bytes() };
}

function readList<Item>(frame: FrameReader, read: () => Item): Item[] {
  const length = frame.number();
  const items: Item[] = [];
  while (items.length < length) items.push(read());
  return items;
}
