import { byteSize, datatypeOfConfig, type Datatype } from "../../protocol/datatype.ts";
import { invalidArgument } from "../../protocol/error.ts";
import type { ModelWarmup } from "../../protocol/model-config.ts";
import { noParameters } from "../../protocol/parameters.ts";
import { invalidRequest } from "../../protocol/request-label.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import { elementCount } from "../../protocol/shape.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import { validRequest, type ValidInferenceRequest } from "../../protocol/valid-request.ts";
import { readSideFile } from "../side-file.ts";

/** An entry of `model_warmup`: what an instance runs before it takes requests. */
export interface WarmupSample {
  readonly name: string;
  readonly request: ValidInferenceRequest;
  /** So many copies of the request run together, */
  readonly batchSize: number;
  /** and so often. */
  readonly count: number;
}

/** Fills with random bytes. */
export type FillRandom = (bytes: Uint8Array) => void;

type WarmupInput = ModelWarmup["inputs"][string];

const maxSampleBytes = 2 ** 30;
const maxFileBytes = 2 ** 30;

/**
 * Makes the requests that a model's config wants to be run before it is ready, as far as they can be known before it runs.
 * Throws INVALID_ARG, mostly in the reference's words, for those that cannot be made.
 *
 * @param modelDirectory holds the files that samples take their data from
 */
export async function readWarmup(
  model: ServedModel,
  modelDirectory: string,
  fillRandom: FillRandom,
): Promise<readonly WarmupSample[]> {
  const samples: WarmupSample[] = [];
  for (const setting of model.config.modelWarmup) {
    const { name, batchSize, count } = setting;
    // As in the reference: none of a request is no sample, and no count is one.
    if (batchSize === 0) continue;
    const inputs: Tensor[] = [];
    for (const [input, data] of Object.entries(setting.inputs)) {
      const bytes = await inputBytes(input, data, { modelDirectory, fillRandom, batchSize });
      inputs.push({ ...tensorHead(model, input, data), bytes });
    }
    samples.push({
      name,
      request: sampleRequest(model, inputs),
      batchSize,
      count: Math.max(1, count),
    });
  }
  return samples;
}

function tensorHead(
  { config }: ServedModel,
  name: string,
  { dataType, dims }: WarmupInput,
): Omit<Tensor, "bytes"> {
  const shape = config.maxBatchSize > 0 ? [1, ...dims] : dims;
  return { name, datatype: knownDatatype(name, dataType), shape };
}

function knownDatatype(input: string, dataType: string): Datatype {
  const datatype = datatypeOfConfig(dataType);
  if (datatype) return datatype;
  throw invalidRequest("", `inference input '${input}' data-type is '<invalid>'`);
}

interface SampleSource {
  readonly modelDirectory: string;
  readonly fillRandom: FillRandom;
  readonly batchSize: number;
}

async function inputBytes(
  name: string,
  input: WarmupInput,
  { modelDirectory, fillRandom, batchSize }: SampleSource,
): Promise<Uint8Array> {
  const { dims, zeroData, randomData, inputDataFile } = input;
  const datatype = knownDatatype(name, input.dataType);
  if (dims.some((dimension) => dimension < 0)) {
    throw invalidArgument(
      `warmup setting expects all variable-size dimensions are specified for input '${name}'`,
    );
  }
  // Zeros are BYTES elements, too: empty ones.
  const byteLength = elementCount(dims) * (byteSize(datatype) || 4);
  if (byteLength * batchSize > maxSampleBytes) {
    const text = `warmup setting of input '${name}' makes ${byteLength * batchSize} bytes`;
    throw invalidArgument(`${text}, expected at most ${maxSampleBytes}`);
  }
  if (inputDataFile !== undefined) {
    const content = await readSideFile({
      subject: `warmup setting of input '${name}'`,
      path: inputDataFile,
      modelDirectory,
      folder: "warmup",
      maxBytes: maxFileBytes,
    });
    return datatype === "BYTES" ? content : wholeTensor(inputDataFile, content, byteLength);
  }
  if (zeroData === undefined && randomData === undefined) {
    throw invalidRequest("", `warmup setting expects input '${name}' to have input_data_type set`);
  }
  const bytes = new Uint8Array(byteLength);
  if (randomData !== undefined && datatype !== "BYTES") fillRandom(bytes);
  // Anything but 0 and 1 is no boolean for a model.
  return datatype === "BOOL" ? bytes.map((byte) => byte & 1) : bytes;
}

function wholeTensor(file: string, content: Uint8Array, byteLength: number): Uint8Array {
  if (content.length >= byteLength) return content.subarray(0, byteLength);
  throw invalidRequest(
    "",
    `warmup setting expects ${byteLength} bytes, but the data provided from ${file} only has ${content.length} bytes`,
  );
}

/** Inputs that no client may give, such as the controls of a sequence, are added behind the check. */
function sampleRequest(model: ServedModel, inputs: readonly Tensor[]): ValidInferenceRequest {
  const names = new Set(model.config.input.map(({ name }) => name));
  const request = validRequest(model, {
    modelName: model.name,
    modelVersion: model.version,
    id: "",
    inputs: inputs.filter(({ name }) => names.has(name)),
    outputs: [],
    parameters: noParameters,
    priority: 0,
    timeoutMicroseconds: 0,
  });
  return { ...request, inputs };
}
