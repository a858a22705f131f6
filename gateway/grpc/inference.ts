import type { handleUnaryCall, Metadata } from "@grpc/grpc-js";
import type { Call } from "../../protocol/call.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { clientError, logAnswered } from "../call-log.ts";
import type { DataPlane } from "../data-plane.ts";
import { callFields, callOf, forwardedHeaders } from "./call-context.ts";
import { inferenceRequest } from "./decode-request.ts";
import { encodeResponse } from "./encode-response.ts";
import { callStatus } from "./error-status.ts";
import type { GrpcOptions } from "./options.ts";
import { readRequest } from "./request-message.ts";
import type { RequestMessage } from "./request-message.ts";

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
    let message: RequestMessage | undefined;
    try {
      message = readRequest(unary.request);
      const response = await infer(message, unary.metadata, { plane, options, call });
      unary.off("cancelled", cancel);
      respond(null, response);
      if (options.log.verboseLevel > 0) {
        logAnswered(options.log, callFields(unary.getPath(), call.receivedAt, message));
      }
    } catch (error) {
      unary.off("cancelled", cancel);
      const fields = callFields(unary.getPath(), call.receivedAt, message);
      respond(callStatus(clientError(error, options.log, fields)));
    }
  };
}

interface InferContext {
  readonly plane: DataPlane;
  readonly options: GrpcOptions;
  readonly call: Call;
}

async function infer(
  message: RequestMessage,
  metadata: Metadata,
  { plane, options, call }: InferContext,
): Promise<Buffer> {
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
