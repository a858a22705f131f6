import { anonymous, Call } from "../../protocol/call.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import type { InferenceError } from "../../protocol/error.ts";
import type { InferenceRequest, InferenceResponse } from "../../protocol/inference.ts";
import { noParameters } from "../../protocol/parameters.ts";
import type { Shape } from "../../protocol/shape.ts";
import { elementCount } from "../../protocol/shape.ts";
import { validRequest, type ValidInferenceRequest } from "../../protocol/valid-request.ts";
import type { PendingRequest, ResponseSink } from "../../serving/scheduler.ts";

/** A request with one FP32 tensor "IN" of zeros, checked against the model. */
export function requestFor(
  model: ServedModel,
  shape: Shape = [1, 4],
  more: Partial<InferenceRequest> = {},
): ValidInferenceRequest {
  const bytes = new Uint8Array(4 * elementCount(shape));
  return validRequest(model, {
    modelName: model.name,
    modelVersion: "",
    id: "",
    inputs: [{ name: "IN", datatype: "FP32", shape, bytes }],
    outputs: [],
    parameters: noParameters,
    priority: 0,
    timeoutMicroseconds: 0,
    ...more,
  });
}

/** The inputs of a request as its outputs. */
export function responseTo(request: ValidInferenceRequest): InferenceResponse {
  return {
    modelName: request.modelName,
    modelVersion: request.model.version,
    id: request.id,
    outputs: request.inputs.map((input) => ({ ...input, name: "OUT" })),
    parameters: noParameters,
  };
}

/** Keeps what a request was answered. */
export class KeptAnswers implements ResponseSink {
  readonly responses: InferenceResponse[] = [];
  ended = false;
  error: InferenceError | undefined;

  send(response: InferenceResponse | undefined, final: boolean): void {
    if (response) this.responses.push(response);
    this.ended ||= final;
  }

  fail(error: InferenceError): void {
    this.error = error;
    this.ended = true;
  }
}

/** A request on its way, and what comes of it. */
export interface SentRequest extends PendingRequest {
  readonly sink: KeptAnswers;
}

export function pendingRequest(
  request: ValidInferenceRequest,
  enqueuedAt = 0,
  { tenant } = anonymous,
): SentRequest {
  const call = new Call({ ...anonymous, tenant }, enqueuedAt);
  return { request, call, sink: new KeptAnswers(), enqueuedAt };
}
