import protobuf from "protobufjs/minimal.js";
import type { Datatype } from "../../protocol/datatype.ts";
import { onnxTypeOf } from "../../pool/backend/ort-tensor.ts";

/** A dimension is a number, or a name for one that varies. */
export interface OnnxTensor {
  readonly name: string;
  readonly datatype: Datatype;
  readonly shape: readonly (number | string)[];
}

export interface OnnxNode {
  readonly op: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Integers, and the graphs of loops. */
  readonly attributes?: Readonly<Record<string, number | OnnxGraph>>;
}

export interface OnnxGraph {
  readonly inputs: readonly OnnxTensor[];
  readonly outputs: readonly OnnxTensor[];
  readonly nodes: readonly OnnxNode[];
  /** Constants of the graph: raw little-endian bytes. */
  readonly initializers?: readonly (OnnxTensor & { readonly bytes: Uint8Array })[];
}

/** The bytes of a small ONNX model, so that tests need no Python to make one. */
export function onnxModel(graph: OnnxGraph): Uint8Array {
  const opset = message(text(1, ""), varint(2, 17));
  return message(varint(1, 8), bytes(7, graphProto(graph)), bytes(8, opset));
}

/** A model that gives each input back under another name. */
export function identityModel(
  ...pairs: readonly (readonly [input: OnnxTensor, output: string])[]
): Uint8Array {
  return onnxModel({
    inputs: pairs.map(([input]) => input),
    outputs: pairs.map(([input, output]) => ({ ...input, name: output })),
    nodes: pairs.map(([input, output]) => ({
      op: "Identity",
      inputs: [input.name],
      outputs: [output],
    })),
  });
}

type Field = (writer: protobuf.Writer) => void;

function message(...fields: readonly Field[]): Uint8Array {
  const writer = protobuf.Writer.create();
  for (const field of fields) field(writer);
  return writer.finish();
}

function bytes(number: number, value: Uint8Array): Field {
  return (writer) => void writer.uint32((number << 3) | 2).bytes(value);
}

function text(number: number, value: string): Field {
  return (writer) => void writer.uint32((number << 3) | 2).string(value);
}

function varint(number: number, value: number): Field {
  return (writer) => void writer.uint32(number << 3).int64(value);
}

function graphProto({ inputs, outputs, nodes, initializers = [] }: OnnxGraph): Uint8Array {
  return message(
    ...nodes.map((node) => bytes(1, nodeProto(node))),
    text(2, "graph"),
    ...initializers.map((tensor) => bytes(5, tensorProto(tensor))),
    ...inputs.map((tensor) => bytes(11, valueInfo(tensor))),
    ...outputs.map((tensor) => bytes(12, valueInfo(tensor))),
  );
}

function nodeProto({ op, inputs, outputs, attributes = {} }: OnnxNode): Uint8Array {
  return message(
    ...inputs.map((name) => text(1, name)),
    ...outputs.map((name) => text(2, name)),
    text(4, op),
    ...Object.entries(attributes).map(([name, value]) => bytes(5, attributeProto(name, value))),
  );
}

function attributeProto(name: string, value: number | OnnxGraph): Uint8Array {
  return typeof value === "number"
    ? message(text(1, name), varint(3, value), varint(20, 2))
    : message(text(1, name), bytes(6, graphProto(value)), varint(20, 5));
}

function tensorProto({
  name,
  datatype,
  shape,
  bytes: raw,
}: OnnxTensor & { readonly bytes: Uint8Array }): Uint8Array {
  return message(
    ...shape.map((dimension) => varint(1, Number(dimension))),
    varint(2, onnxTypeOf(datatype)),
    text(8, name),
    bytes(9, raw),
  );
}

function valueInfo({ name, datatype, shape }: OnnxTensor): Uint8Array {
  const dimensions = shape.map((dimension) =>
    bytes(
      1,
      typeof dimension === "string" ? message(text(2, dimension)) : message(varint(1, dimension)),
    ),
  );
  const tensor = message(varint(1, onnxTypeOf(datatype)), bytes(2, message(...dimensions)));
  return message(text(1, name), bytes(2, message(bytes(1, tensor))));
}
