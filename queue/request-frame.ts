import type { WaitingExecution } from "../protocol/call.ts";
import type { InferenceRequest, RequestedOutput, SequenceOptions } from "../protocol/inference.ts";
import { noParameters } from "../protocol/parameters.ts";
import { BundleWriter, type Frame, readBundle } from "./bundle.ts";
import { claimBytes } from "./payload-store.ts";
import {
  areAlike,
  contentBytes,
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
  /** Of a request that is traced: the trace context for those who take part in it, or "". */
  readonly trace?: string;
  /** Executions that wait for it, of one that a model has made. */
  readonly callers?: readonly WaitingExecution[];
}

/** Requests as they lie in Redis: everything but their model's name, which all of an envelope share. */
export interface EncodedRequests {
  readonly bundle: Buffer;
  /** Those that are too large for the bundle, by index: it says only that they are elsewhere. */
  readonly claimed: ReadonlyMap<number, Buffer>;
}

/** What requests may have in common. Short names; what has its default is left out. */
interface RequestHead {
  readonly version?: string;
  readonly in: readonly TensorHead[];
  readonly out?: readonly RequestedOutput[];
  readonly parameters?: readonly ParameterHead[];
  readonly priority?: number;
  readonly timeout?: number;
  readonly sequence?: Omit<SequenceOptions, "id"> & { readonly id: ParameterHead };
}

/** What is different in each request. */
interface RequestOwn extends Pick<SentRequest, "trace" | "callers"> {
  readonly id?: string;
}

/** The head of a frame whose request is elsewhere: what is common to all. */
const claimCheck = 0;

/** About how much room a request takes. */
export function requestBytes(request: InferenceRequest): number {
  return contentBytes(request.inputs, request);
}

/** @param head what is to be known of all of them */
export function encodeRequests(
  head: object,
  requests: Iterable<readonly [index: number, sent: SentRequest]>,
): EncodedRequests {
  const heads = new RequestHeads(new BundleWriter(head));
  const claimed = new Map<number, Buffer>();
  for (const [index, sent] of requests) {
    if (requestBytes(sent.request) > claimBytes) {
      claimed.set(index, encodeRequest(sent));
      heads.bundle.add({ head: claimCheck, own: "", index, number: 0, parts: [] });
    } else {
      heads.add(index, sent);
    }
  }
  return { bundle: heads.bundle.finish(), claimed };
}

/** A request alone. */
export function encodeRequest(sent: SentRequest): Buffer {
  const heads = new RequestHeads(new BundleWriter());
  heads.add(0, sent);
  return heads.bundle.finish();
}

/** Remembers the last head, because the next request often has the same: comparing costs less than writing it. */
class RequestHeads {
  readonly bundle: BundleWriter;
  #last: InferenceRequest | undefined;
  #head = 0;

  constructor(bundle: BundleWriter) {
    this.bundle = bundle;
  }

  add(index: number, sent: SentRequest): void {
    const { request, receivedAt } = sent;
    if (!this.#last || !haveSameHead(this.#last, request)) {
      this.#head = this.bundle.head(headOf(request));
      this.#last = request;
    }
    const parts = request.inputs.map(({ bytes }) => bytes);
    this.bundle.add({ head: this.#head, own: ownOf(sent), index, number: receivedAt, parts });
  }
}

/** False for those of which it takes longer to find out. */
function haveSameHead(left: InferenceRequest, right: InferenceRequest): boolean {
  return (
    areAlike(left.inputs, right.inputs) &&
    left.modelVersion === right.modelVersion &&
    left.priority === right.priority &&
    left.timeoutMicroseconds === right.timeoutMicroseconds &&
    (left.outputs === right.outputs || left.outputs.length + right.outputs.length === 0) &&
    (left.parameters === right.parameters || left.parameters.size + right.parameters.size === 0) &&
    !left.sequence &&
    !right.sequence
  );
}

function headOf(request: InferenceRequest): RequestHead {
  const { sequence } = request;
  return {
    in: request.inputs.map(tensorHead),
    ...(request.modelVersion !== "" && { version: request.modelVersion }),
    ...(request.outputs.length > 0 && { out: request.outputs }),
    ...(request.parameters.size > 0 && { parameters: parameterHeads(request.parameters) }),
    ...(request.priority !== 0 && { priority: request.priority }),
    ...(request.timeoutMicroseconds !== 0 && { timeout: request.timeoutMicroseconds }),
    ...(sequence && { sequence: { ...sequence, id: sequenceIdHead(sequence.id) } }),
  };
}

function ownOf({ request: { id }, trace, callers }: SentRequest): string {
  if (id === "" && trace === undefined && !callers) return "";
  const own: RequestOwn = {
    ...(id !== "" && { id }),
    ...(trace !== undefined && { trace }),
    ...(callers && { callers }),
  };
  return JSON.stringify(own);
}

/** What `encodeRequests` wrote, without those that are elsewhere. */
export interface DecodedRequests {
  readonly head: unknown;
  readonly requests: Map<number, SentRequest>;
  readonly claimed: readonly number[];
}

/** The tensors are views on the bundle. */
export function decodeRequests(bundle: Buffer, modelName: string): DecodedRequests {
  const { common, frames } = readBundle(bundle);
  const requests = new Map<number, SentRequest>();
  const claimed: number[] = [];
  for (const frame of frames) {
    if (frame.head === common) claimed.push(frame.index);
    else requests.set(frame.index, requestOf(frame, modelName));
  }
  return { head: common, requests, claimed };
}

/** What `encodeRequest` wrote. */
export function decodeRequest(bundle: Buffer, modelName: string): SentRequest {
  const [request] = decodeRequests(bundle, modelName).requests.values();
  if (!request) throw new RangeError("the bundle has no request");
  return request;
}

function requestOf(frame: Frame, modelName: string): SentRequest {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by RequestHeads, as is the other
  const head = frame.head as RequestHead;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const { id = "", ...rare } = (frame.own ?? {}) as RequestOwn;
  return {
    receivedAt: frame.number,
    ...rare,
    request: {
      modelName,
      modelVersion: head.version ?? "",
      id,
      inputs: tensorsOf(head.in, frame.bytes),
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
