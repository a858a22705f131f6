import type { InferenceRequest, RequestedOutput, SequenceOptions } from "../protocol/inference.ts";
import { noParameters } from "../protocol/parameters.ts";
import { readFrame, writeFrame } from "./frame.ts";
import {
  type ParameterHead,
  parameterHeads,
  parametersOf,
  type TensorHead,
  tensorHead,
  tensorsOf,
} from "./tensor-heads.ts";

/** A request in an envelope, and when its gateway took it. */
export interface SentRequest {
  readonly request: InferenceRequest;
  /** Milliseconds since the epoch, with fractions: clocks of processes differ, those of machines hardly. */
  readonly receivedAt: number;
}

/** Short names: this is written and read once for every request. What has its default is left out. */
interface RequestHead {
  readonly at: number;
  readonly version?: string;
  readonly id?: string;
  readonly in: readonly TensorHead[];
  readonly out?: readonly RequestedOutput[];
  readonly parameters?: readonly ParameterHead[];
  readonly priority?: number;
  readonly timeout?: number;
  readonly sequence?: Omit<SequenceOptions, "id"> & { readonly id: ParameterHead };
}

/** A request as it lies in Redis: everything but its model's name, which all of an envelope share. */
export function encodeRequest({ request, receivedAt }: SentRequest): Buffer {
  const { sequence } = request;
  const head: RequestHead = {
    at: receivedAt,
    in: request.inputs.map(tensorHead),
    ...(request.modelVersion !== "" && { version: request.modelVersion }),
    ...(request.id !== "" && { id: request.id }),
    ...(request.outputs.length > 0 && { out: request.outputs }),
    ...(request.parameters.size > 0 && { parameters: parameterHeads(request.parameters) }),
    ...(request.priority !== 0 && { priority: request.priority }),
    ...(request.timeoutMicroseconds !== 0 && { timeout: request.timeoutMicroseconds }),
    ...(sequence && { sequence: { ...sequence, id: sequenceIdHead(sequence.id) } }),
  };
  const parts = request.inputs.map(({ bytes }) => bytes);
  return writeFrame(head, parts);
}

/** The tensors are views on the frame. */
export function decodeRequest(frame: Buffer, modelName: string): SentRequest {
  const { head: value, bytes } = readFrame(frame);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by encodeRequest
  const head = value as RequestHead;
  return {
    receivedAt: head.at,
    request: {
      modelName,
      modelVersion: head.version ?? "",
      id: head.id ?? "",
      inputs: tensorsOf(head.in, bytes),
      outputs: head.out ?? [],
      parameters: head.parameters ? parametersOf(head.parameters) : noParameters,
      priority: head.priority ?? 0,
      timeoutMicroseconds: head.timeout ?? 0,
      ...(head.sequence && { sequence: sequenceOf(head.sequence) }),
    },
  };
}

function sequenceIdHead(id: bigint | string): ParameterHead {
  return ["", typeof id === "bigint" ? "bigint" : "string", String(id)];
}

function sequenceOf({
  id: [, kind, text],
  start,
  end,
}: NonNullable<RequestHead["sequence"]>): SequenceOptions {
  return { id: kind === "bigint" ? BigInt(text) : text, start, end };
}
