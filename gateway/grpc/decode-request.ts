import { datatypes, isDatatype } from "../../protocol/datatype.ts";
import { InferenceError, StatusCode, invalidArgument } from "../../protocol/error.ts";
import type { InferenceRequest, RequestedOutput } from "../../protocol/inference.ts";
import type { Parameters } from "../../protocol/parameters.ts";
import { requestLabel } from "../../protocol/request-label.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import { classificationOption, requestOptions } from "./infer-parameters.ts";
import type {
  InputMessage,
  OutputMessage,
  RequestMessage,
  WireParameters,
} from "./request-message.ts";
import { contentsBytes } from "./typed-contents.ts";

/**
 * Turns a `ModelInferRequest` into a request free of its transport: tensors are views on the message, or converted once
 * from typed contents. Throws INVALID_ARG with the reference's texts.
 */
export function inferenceRequest(message: RequestMessage, headers: Parameters): InferenceRequest {
  return {
    modelName: message.modelName,
    modelVersion: message.modelVersion,
    id: message.id,
    inputs: message.inputs.map((input, index) => tensor(message, input, index)),
    outputs: message.outputs.map(requestedOutput),
    ...requestOptions(message.parameters, headers),
  };
}

function tensor(message: RequestMessage, input: InputMessage, index: number): Tensor {
  const { name, datatype, shape } = input;
  refuseSharedMemory(input.parameters, name);
  if (!isDatatype(datatype)) {
    throw invalidArgument(
      `${requestLabel(message.id)}inference input '${name}' data-type is '${datatype}', ` +
        `but model '${message.modelName}' expects one of ${datatypes.join(", ")}`,
    );
  }
  if (message.rawInputContents.length > 0) {
    return { name, datatype, shape, bytes: rawContents(message, input, index) };
  }
  if (!input.contents) throw noData(message, name);
  const subject = `input tensor '${name}' for model '${message.modelName}'`;
  return { name, datatype, shape, bytes: contentsBytes(input.contents, datatype, subject) };
}

function rawContents(message: RequestMessage, input: InputMessage, index: number): Buffer {
  if (input.contents) {
    throw invalidArgument(
      "contents field must not be specified when using raw_input_contents " +
        `for '${input.name}' for model '${message.modelName}'`,
    );
  }
  const bytes = message.rawInputContents[index];
  if (!bytes) throw noData(message, input.name);
  return bytes;
}

function requestedOutput({ name, parameters }: OutputMessage): RequestedOutput {
  refuseSharedMemory(parameters, name);
  const classification = classificationOption(parameters);
  return classification === undefined ? { name } : { name, classification };
}

/** No region can be registered yet, so none is ever found. */
function refuseSharedMemory(parameters: WireParameters | undefined, tensorName: string): void {
  const key = "shared_memory_region";
  if (!parameters?.has(key)) return;
  const region = parameters.get(key);
  if (typeof region !== "string") {
    throw invalidArgument(
      `invalid value type for '${key}' parameter for tensor '${tensorName}', expected string_param.`,
    );
  }
  throw new InferenceError(StatusCode.NotFound, `Unable to find shared memory region: '${region}'`);
}

function noData(message: RequestMessage, name: string): InferenceError {
  return invalidArgument(
    `unable to find data for input tensor '${name}' for model '${message.modelName}' in request.`,
  );
}
