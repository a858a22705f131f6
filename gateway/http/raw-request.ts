import { joinBytesElements } from "../../protocol/bytes-tensor.ts";
import { byteSize, datatypeOfConfig } from "../../protocol/datatype.ts";
import type { Datatype } from "../../protocol/datatype.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { ParsedInfer, RequestTarget } from "../../protocol/infer-json.ts";
import type { ModelInput } from "../../protocol/model-config.ts";
import { requestLabel } from "../../protocol/request-label.ts";
import type { Shape } from "../../protocol/shape.ts";
import type { Tensor } from "../../protocol/tensor.ts";

/**
 * A request without JSON: the whole body is the model's only input, whose name, datatype and shape follow from the
 * config. All its outputs come back as binary data.
 */
export function rawRequest(
  model: ServedModel,
  body: Uint8Array,
  target: RequestTarget,
): ParsedInfer {
  const request = {
    modelName: target.modelName,
    modelVersion: target.modelVersion,
    id: "",
    inputs: [rawInput(model, body)],
    outputs: [],
    parameters: target.forwarded,
    priority: 0,
    timeoutMicroseconds: 0,
  };
  return { request, binaryOutputs: "all" };
}

function rawInput({ name: modelName, config }: ServedModel, body: Uint8Array): Tensor {
  const [input, ...others] = config.input;
  const datatype = datatypeOfConfig(input?.dataType ?? "");
  if (!input || !datatype || others.length > 0) {
    throw invalid(
      "Raw request must only have 1 input (found 1) to be deduced but got " +
        `${config.input.length} inputs in '${modelName}' model configuration`,
    );
  }
  const { name } = input;
  const batch = config.maxBatchSize > 0 && !input.isShapeTensor ? [1] : [];
  if (datatype === "BYTES") {
    return {
      name,
      datatype,
      shape: [...batch, ...onlyElement(input)],
      bytes: joinBytesElements([body]),
    };
  }
  return { name, datatype, shape: [...batch, ...deducedDims(input, datatype, body)], bytes: body };
}

function onlyElement({ name, dims }: ModelInput): Shape {
  if (dims.length === 1 && dims[0] === 1) return dims;
  throw invalid(`For BYTE datatype raw input '${name}', the model must have input shape [1]`);
}

/** The config's dims with the variable one, if there is one, made as large as the body fills it. */
function deducedDims({ name, dims }: ModelInput, datatype: Datatype, body: Uint8Array): Shape {
  let fixed = byteSize(datatype);
  let variable = 0;
  for (const dimension of dims) {
    if (dimension === -1) variable += 1;
    else fixed *= dimension;
  }
  if (variable > 1) {
    throw invalid(
      `The shape of the raw input '${name}' can not be deduced because there are more than one variable-sized dimension`,
    );
  }
  const filled = Math.floor(body.length / Math.max(fixed, 1));
  return dims.map((dimension) => (dimension === -1 ? filled : dimension));
}

function invalid(text: string): InferenceError {
  return new InferenceError(StatusCode.InvalidArg, requestLabel("") + text);
}
