import { datatypes, isDatatype } from "../../protocol/datatype.ts";
import { type InferenceError, invalidArgument } from "../../protocol/error.ts";
import type { InferenceRequest, RequestedOutput } from "../../protocol/inference.ts";
import type { Parameters } from "../../protocol/parameters.ts";
import { requestLabel } from "../../protocol/request-label.ts";
import { type RequestMemory, unknownRegion } from "../../protocol/shared-memory.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import { classificationOption, requestOptions } from "./infer-parameters.ts";
import { memorySlice } from "./memory-slice.ts";
import type { InputMessage, OutputMessage, RequestMessage } from "./request-message.ts";
import { contentsBytes } from "./typed-contents.ts";

/**
 * Turns a `ModelInferRequest` into a request free of its transport: tensors are views on the message, or converted once
 * from typed contents. Throws INVALID_ARG with the reference's texts.
 *
 * @param memory without it every region of shared memory is unknown
 */
export function inferenceRequest(
  message: RequestMessage,
  headers: Parameters,
  memory?: RequestMemory,
): InferenceRequest {
  // Inputs in shared memory have no raw contents.
  let next = 0;
  const sources = { nextRaw: () => message.rawInputContents[next++], memory };
  return {
    modelName: message.modelName,
    modelVersion: message.modelVersion,
    id: message.id,
    inputs: message.inputs.map((input) => tensor(message, input, sources)),
    outputs: message.outputs.map((output) => requestedOutput(output, memory)),
    ...requestOptions(message.parameters, headers),
  };
}

/** Where the bytes of an input may come from. */
interface InputSources {
  readonly nextRaw: () => Buffer | undefined;
  readonly memory: RequestMemory | undefined;
}

function tensor(
  message: RequestMessage,
  input: InputMessage,
  { nextRaw, memory }: InputSources,
): Tensor {
  const { name, datatype, shape } = input;
  if (!isDatatype(datatype)) {
    throw invalidArgument(
      `${requestLabel(message.id)}inference input '${name}' data-type is '${datatype}', ` +
        `but model '${message.modelName}' expects one of ${datatypes.join(", ")}`,
    );
  }
  const slice = memorySlice(input.parameters, name);
  if (slice) {
    if (input.contents) throw contentsBesideMemory(message, name);
    if (!memory) throw unknownRegion(slice.region);
    return { name, datatype, shape, bytes: memory.input(slice) };
  }
  if (message.rawInputContents.length > 0) {
    return { name, datatype, shape, bytes: rawContents(message, input, nextRaw()) };
  }
  if (!input.contents) throw noData(message, name);
  const subject = `input tensor '${name}' for model '${message.modelName}'`;
  return { name, datatype, shape, bytes: contentsBytes(input.contents, datatype, subject) };
}

function rawContents(
  message: RequestMessage,
  input: InputMessage,
  bytes: Buffer | undefined,
): Buffer {
  if (input.contents) {
    throw invalidArgument(
      "contents field must not be specified when using raw_input_contents " +
        `for '${input.name}' for model '${message.modelName}'`,
    );
  }
  if (!bytes) throw noData(message, input.name);
  return bytes;
}

function requestedOutput(
  { name, parameters }: OutputMessage,
  memory: RequestMemory | undefined,
): RequestedOutput {
  if (!parameters) return { name };
  const classification = classificationOption(parameters);
  const slice = memorySlice(parameters, name);
  if (slice) {
    if (classification !== undefined) {
      throw invalidArgument("output can't set both 'shared_memory_region' and 'classification'");
    }
    if (!memory) throw unknownRegion(slice.region);
    memory.output(name, slice);
  }
  return classification === undefined ? { name } : { name, classification };
}

function contentsBesideMemory({ modelName }: RequestMessage, name: string): InferenceError {
  return invalidArgument(
    `unexpected 'content' provided when using shared memory for input tensor '${name}' for model '${modelName}'`,
  );
}

function noData(message: RequestMessage, name: string): InferenceError {
  return invalidArgument(
    `unable to find data for input tensor '${name}' for model '${message.modelName}' in request.`,
  );
}
