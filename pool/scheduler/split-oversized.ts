import type { Call } from "../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import { requestLabel } from "../../protocol/request-label.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import type { ValidInferenceRequest } from "../../protocol/valid-request.ts";
import { joinRows } from "./join-rows.ts";
import { cutRows } from "./rows.ts";
import type { PendingRequest, Scheduler } from "../../serving/scheduler.ts";

/** So that a request of a few bytes (a huge batch of empty items) cannot become work without end. */
const maxParts = 4096;

/**
 * Runs a request with more items than `maxBatchSize` in parts that fit, and joins their responses in order; the
 * statistics count the parts. The first part that fails fails the request and takes the others back.
 */
export function splitOversized(scheduler: Scheduler, maxBatchSize: number): Scheduler {
  return {
    enqueue(pending) {
      if (pending.request.batchSize <= maxBatchSize) scheduler.enqueue(pending);
      else enqueueParts(scheduler, pending, maxBatchSize);
    },
    get inflight() {
      return scheduler.inflight;
    },
    stop: () => scheduler.stop(),
  };
}

function enqueueParts(scheduler: Scheduler, whole: PendingRequest, maxBatchSize: number): void {
  const { id, batchSize } = whole.request;
  const count = Math.ceil(batchSize / maxBatchSize);
  if (count > maxParts) {
    const text = `a batch of ${batchSize} splits into ${count} parts, expected at most ${maxParts}`;
    whole.sink.fail(new InferenceError(StatusCode.InvalidArg, requestLabel(id) + text));
    return;
  }
  const sizes = Array.from({ length: count }, (_, i) =>
    Math.min(maxBatchSize, batchSize - i * maxBatchSize),
  );
  new SplitRequest(whole, sizes).enqueue(scheduler);
}

interface Part {
  readonly request: ValidInferenceRequest;
  readonly call: Call;
  response: InferenceResponse | undefined;
}

/** A request in parts: waits for the response of each, or for the failure of one. */
class SplitRequest {
  readonly #whole: PendingRequest;
  readonly #parts: readonly Part[];
  #missing: number;
  #ended = false;

  constructor(whole: PendingRequest, sizes: readonly number[]) {
    this.#whole = whole;
    this.#missing = sizes.length;
    this.#parts = cutRequest(whole.request, sizes).map((request) => {
      const call = whole.call.part();
      call.trace = whole.call.trace;
      return { request, call, response: undefined };
    });
  }

  enqueue(scheduler: Scheduler): void {
    const { call, enqueuedAt } = this.#whole;
    call.onCancel((reason) => this.#cancel(reason));
    for (const part of this.#parts) {
      scheduler.enqueue({
        request: part.request,
        call: part.call,
        sink: {
          send: (response, final) => this.#send(part, response, final),
          fail: (error) => this.#fail(error),
        },
        enqueuedAt,
      });
    }
  }

  #send(part: Part, response: InferenceResponse | undefined, final: boolean): void {
    part.response ??= response;
    if (!final || --this.#missing > 0 || this.#ended) return;
    try {
      const joined = joinResponses(this.#parts);
      this.#end();
      this.#whole.sink.send(joined, true);
    } catch (error) {
      this.#fail(InferenceError.from(error));
    }
  }

  #fail(error: InferenceError): void {
    if (this.#ended) return;
    this.#end();
    this.#cancel(error);
    this.#whole.sink.fail(error);
  }

  #cancel(reason: InferenceError): void {
    for (const { call } of this.#parts) call.cancel(reason);
  }

  #end(): void {
    this.#ended = true;
    this.#whole.call.onCancel(undefined);
  }
}

/** The same request with so many items each, its inputs views on those of the whole. */
function cutRequest(
  request: ValidInferenceRequest,
  sizes: readonly number[],
): readonly ValidInferenceRequest[] {
  const inputs = request.inputs.map((input) => cutTensor(input, sizes));
  return sizes.map((batchSize, i) => ({
    ...request,
    batchSize,
    inputs: inputs.flatMap((parts) => parts[i] ?? []),
  }));
}

function cutTensor(tensor: Tensor, sizes: readonly number[]): readonly Tensor[] {
  return cutRows(tensor, sizes).map((bytes, i) => ({
    ...tensor,
    shape: tensor.shape.with(0, sizes[i] ?? 0),
    bytes,
  }));
}

function joinResponses(parts: readonly Part[]): InferenceResponse {
  const responses = parts.flatMap(({ response }) => response ?? []);
  const [first] = responses;
  if (!first || responses.length < parts.length) {
    throw new InferenceError(StatusCode.Internal, "a part of a split batch has no response");
  }
  const outputs = first.outputs.map(({ name }) =>
    joinRows(
      responses.flatMap(
        (response) => response.outputs.find((output) => output.name === name) ?? [],
      ),
    ),
  );
  return { ...first, outputs };
}
