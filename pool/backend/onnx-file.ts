import protobuf from "protobufjs/minimal.js";
import { floatInput, floatOutput } from "./float-ports.ts";
import { onnxTypeOf } from "./ort-tensor.ts";

/** Field numbers of `onnx.proto`, as few as are needed here. */
const modelGraph = 7;
const graph = { node: 1, input: 11, output: 12 } as const;
const node = { input: 1, output: 2, opType: 4, attribute: 5 } as const;
const attribute = { name: 1, int: 3, type: 20 } as const;
const attributeTypeInt = 2;
const valueInfo = { name: 1, type: 2 } as const;
const typeTensor = 1;
const tensorElementType = 1;
const lengthDelimited = 2;

/**
 * Rewrites an ONNX model so that its BF16 inputs and outputs speak float32, for a binding that lacks BF16: each gets a
 * Cast between a new port and the old name, so that no other node changes. Everything else is copied byte by byte.
 */
export function withFloatPorts(model: Uint8Array, bf16: ReadonlySet<string>): Uint8Array {
  return mapMessage(model, (field, value) =>
    field === modelGraph ? withCasts(value, bf16) : value,
  );
}

function withCasts(graphBytes: Uint8Array, bf16: ReadonlySet<string>): Uint8Array {
  const casts = protobuf.Writer.create();
  const mapped = mapMessage(graphBytes, (field, value) => {
    if (field !== graph.input && field !== graph.output) return value;
    const name = nameOf(value);
    if (!bf16.has(name)) return value;
    const port = field === graph.input ? floatInput(name) : floatOutput(name);
    const cast =
      field === graph.input
        ? castNode(port, name, onnxTypeOf("BF16"))
        : castNode(name, port, onnxTypeOf("FP32"));
    bytesField(casts, graph.node, cast);
    return asFloatPort(value, port);
  });
  return concatenate(mapped, casts.finish());
}

/** Protobuf lets the last value of a field win and merges messages, so an override is simply put behind. */
function asFloatPort(info: Uint8Array, port: string): Uint8Array {
  const elementType = protobuf.Writer.create()
    .uint32(tensorElementType << 3)
    .int32(onnxTypeOf("FP32"));
  const tensor = bytesField(protobuf.Writer.create(), typeTensor, elementType.finish());
  const override = stringField(protobuf.Writer.create(), valueInfo.name, port);
  bytesField(override, valueInfo.type, tensor.finish());
  return concatenate(info, override.finish());
}

function castNode(from: string, to: string, onnxType: number): Uint8Array {
  const target = stringField(protobuf.Writer.create(), attribute.name, "to");
  target.uint32(attribute.int << 3).int64(onnxType);
  target.uint32(attribute.type << 3).int32(attributeTypeInt);
  const cast = stringField(protobuf.Writer.create(), node.input, from);
  stringField(cast, node.output, to);
  stringField(cast, node.opType, "Cast");
  return bytesField(cast, node.attribute, target.finish()).finish();
}

function nameOf(info: Uint8Array): string {
  let name = "";
  mapMessage(info, (field, value) => {
    if (field === valueInfo.name) name = new TextDecoder().decode(value);
    return value;
  });
  return name;
}

type Edit = (field: number, value: Uint8Array) => Uint8Array;

/** Copies a message; length-delimited fields go through the edit. */
function mapMessage(message: Uint8Array, edit: Edit): Uint8Array {
  const reader = protobuf.Reader.create(message);
  const writer = protobuf.Writer.create();
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const tag = reader.uint32();
    if ((tag & 7) === lengthDelimited) {
      bytesField(writer, tag >>> 3, edit(tag >>> 3, reader.bytes()));
      continue;
    }
    reader.skipType(tag & 7);
    writer.raw(message.subarray(start, reader.pos));
  }
  return writer.finish();
}

function bytesField(writer: protobuf.Writer, field: number, value: Uint8Array): protobuf.Writer {
  return writer.uint32((field << 3) | lengthDelimited).bytes(value);
}

function stringField(writer: protobuf.Writer, field: number, value: string): protobuf.Writer {
  return writer.uint32((field << 3) | lengthDelimited).string(value);
}

function concatenate(first: Uint8Array, second: Uint8Array): Uint8Array {
  return protobuf.Writer.create().raw(first).raw(second).finish();
}
