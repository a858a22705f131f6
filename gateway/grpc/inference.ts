import type { handleUnaryCall, ServerUnaryCall } from "@grpc/grpc-js";
import type { Call } from "../../protocol/call.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { clientError } from "../client-error.ts";
import type { DataPlane } from "../data-plane.ts";
import { callOf, forwardedHeaders } from "./call-context.ts";
import { inferenceRequest } from "./decode-request.ts";
import { encodeResponse } from "./encode-response.ts";
import { callStatus } from "./error-status.ts";
import type { GrpcOptions } from "./options.ts";
import { readRequest } from "./request-message.ts";

/** True for a model that answers a request as often as it likes. */
export function isDecoupled(model: ServedModel): boolean {
  return model.config.modelTransactionPolicy?.decoupled ?? false;
}

/** ModelInfer: one request, one response. */
export function modelInfer(
  plane: DataPlane,
  options: GrpcOptions,
): handleUnaryCall<Buffer, Buffer> {
  return async (unary, respond) => {
    const call = callOf(unary.metadata);
    // grpc-js says "cancelled" of every call in the end, also of those that were answered.
    const cancel = (): void => call.cancel();
    unary.once("cancelled", cancel);
    try {
      const response = await infer(unary, { plane, options, call });
      unary.off("cancelled", cancel);
      respond(null, response);
    } catch (error) {
      unary.off("cancelled", cancel);
      respond(callStatus(clientError(error, options.log)));
    }
  };
}

interface InferContext {
  readonly plane: DataPlane;
  readonly options: GrpcOptions;
  readonly call: Call;
}

async function infer(
  { request, metadata }: ServerUnaryCall<Buffer, Buffer>,
  { plane, options, call }: InferContext,
): Promise<Buffer> {
  const message = readRequest(request);
  const found = plane.model(message.modelName, message.modelVersion);
  if (isDecoupled(found instanceof Promise ? await found : found)) {
    throw new InferenceError(
      StatusCode.Unsupported,
      "ModelInfer RPC doesn't support models with decoupled transaction policy",
    );
  }
  const headers = forwardedHeaders(metadata, options.headerForwardPattern);
  return encodeResponse(await plane.infer(inferenceRequest(message, headers), call));
}
