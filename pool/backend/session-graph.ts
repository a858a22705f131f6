import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { TensorMetadata } from "../../protocol/metadata.ts";
import type { OrtSession, OrtValueMetadata } from "./ort-binding.ts";
import { datatypeOfOnnx } from "./ort-tensor.ts";

/** The inputs and outputs that an open session's graph has; throws UNSUPPORTED for what the protocol cannot carry. */
export function graphTensors(
  modelName: string,
  session: OrtSession,
): { readonly inputs: readonly TensorMetadata[]; readonly outputs: readonly TensorMetadata[] } {
  return {
    inputs: session.inputMetadata.map((input) =>
      graphTensor(modelName, `input '${input.name}'`, input),
    ),
    outputs: session.outputMetadata.map((output) =>
      graphTensor(modelName, `output '${output.name}'`, output),
    ),
  };
}

function graphTensor(modelName: string, subject: string, value: OrtValueMetadata): TensorMetadata {
  if (!value.isTensor) {
    throw new InferenceError(
      StatusCode.Unsupported,
      `model '${modelName}': ${subject} is not a tensor`,
    );
  }
  const datatype = datatypeOfOnnx(value.type);
  if (!datatype) {
    const text = `model '${modelName}': ${subject} has ONNX element type ${value.type}, which the protocol lacks`;
    throw new InferenceError(StatusCode.Unsupported, text);
  }
  return {
    name: value.name,
    datatype,
    shape: value.shape.map((dimension) => (dimension < 0 ? -1 : dimension)),
  };
}
