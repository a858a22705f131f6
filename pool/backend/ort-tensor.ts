import { datatypes, byteSize, type Datatype } from "../../protocol/datatype.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import { narrowToBf16, widenBf16 } from "./bf16.ts";
import { OrtTensor, type OrtData } from "./ort-binding.ts";
import { decodeStrings, encodeStrings } from "./string-elements.ts";

type View = new (
  buffer: ArrayBufferLike,
  byteOffset: number,
  length: number,
) => Exclude<OrtData, readonly string[]>;

interface OrtType {
  readonly name: string;
  /** `TensorProto.DataType`. */
  readonly onnx: number;
  readonly view: View;
}

/** BF16 travels to the session as float32, see `onnx-file.ts`; BYTES has no view. */
const ortTypes: Readonly<Record<Datatype, OrtType>> = {
  BOOL: { name: "bool", onnx: 9, view: Uint8Array },
  UINT8: { name: "uint8", onnx: 2, view: Uint8Array },
  UINT16: { name: "uint16", onnx: 4, view: Uint16Array },
  UINT32: { name: "uint32", onnx: 12, view: Uint32Array },
  UINT64: { name: "uint64", onnx: 13, view: BigUint64Array },
  INT8: { name: "int8", onnx: 3, view: Int8Array },
  INT16: { name: "int16", onnx: 5, view: Int16Array },
  INT32: { name: "int32", onnx: 6, view: Int32Array },
  INT64: { name: "int64", onnx: 7, view: BigInt64Array },
  FP16: { name: "float16", onnx: 10, view: Uint16Array },
  FP32: { name: "float32", onnx: 1, view: Float32Array },
  FP64: { name: "float64", onnx: 11, view: Float64Array },
  BYTES: { name: "string", onnx: 8, view: Uint8Array },
  BF16: { name: "float32", onnx: 16, view: Float32Array },
};

/** The protocol's name of an ONNX element type, or undefined where the protocol has none. */
export function datatypeOfOnnx(type: number): Datatype | undefined {
  return datatypes.find((datatype) => ortTypes[datatype].onnx === type);
}

/** The number ONNX gives a datatype in `TensorProto.DataType`. */
export function onnxTypeOf(datatype: Datatype): number {
  return ortTypes[datatype].onnx;
}

/** Hands a tensor to a session without copying, where the datatype allows it; strings that ONNX cannot hold throw. */
export function toOrt(tensor: Tensor, dims: readonly number[]): OrtTensor {
  const { datatype, bytes } = tensor;
  const { name, view } = ortTypes[datatype];
  if (datatype === "BYTES") return new OrtTensor(name, decodeStrings(tensor), dims);
  if (datatype === "BF16") return new OrtTensor(name, widenBf16(bytes), dims);
  const size = byteSize(datatype);
  if (bytes.byteLength % size !== 0) {
    throw new InferenceError(
      StatusCode.InvalidArg,
      `input '${tensor.name}': given ${bytes.byteLength} bytes, expected a multiple of ${size} for ${datatype}`,
    );
  }
  return new OrtTensor(
    name,
    new view(bytes.buffer, bytes.byteOffset, bytes.byteLength / size),
    dims,
  );
}

/** Takes a session's output over as bytes. */
export function fromOrt(name: string, datatype: Datatype, value: OrtTensor): Tensor {
  return { name, datatype, shape: value.dims, bytes: outputBytes(datatype, value.data) };
}

function outputBytes(datatype: Datatype, data: OrtData): Uint8Array {
  if (!ArrayBuffer.isView(data)) return encodeStrings(data);
  if (datatype === "BF16") return narrowToBf16(data);
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
