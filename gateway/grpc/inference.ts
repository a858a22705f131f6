import { type handleUnaryCall, Metadata } from "@grpc/grpc-js";
import { anonymousCaller } from "../../auth/caller.ts";
import type { Credentials } from "../../auth/authenticator.ts";
import type { Call } from "../../protocol/call.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import type { Parameters } from "../../protocol/parameters.ts";
import { admit } from "../access.ts";
import type { Permit } from "../admission.ts";
import { clientError, logAnswered } from "../call-log.ts";
import type { DataPlane } from "../data-plane.ts";
import { serverTiming } from "../server-timing.ts";
import { beginTrace, endTrace, grpcMoments, traceFailure, traceSending } from "../trace-call.ts";
import { callFields, callOf, credentialsIn, forwardedHeaders } from "./call-context.ts";
import { inferenceRequest } from "./decode-request.ts";
import { encodeResponse } from "./encode-response.ts";
import { type CallStatus, callStatus } from "./error-status.ts";
import type { SharedMemoryRegions } from "../shared-memory/regions.ts";
import type { GrpcOptions } from "./options.ts";
import { readRequest } from "./request-message.ts";
import type { RequestMessage } from "./request-message.ts";

/** The path of ModelInfer's calls. */
export const modelInferPath = "/inference.GRPCInferenceService/ModelInfer";

/** One call of ModelInfer, whoever speaks HTTP/2 for it. */
export interface InferExchange {
  readonly call: Call;
  readonly message: Buffer;
  /** What the headers show to be let in. */
  credentials(): Credentials;
  /** The request parameters that come from headers; may throw an InferenceError. */
  forwarded(): Parameters;
  /** Ends the call, once; throws, and has not ended it, for a response that is too large to send. */
  respond(failure: CallStatus | null, response?: InferenceResponse): void;
}

/** Answers one call; never rejects. */
export type InferAnswer = (exchange: InferExchange) => Promise<void>;

/** True for a model that answers a request as often as it likes. */
export function isDecoupled(model: ServedModel): boolean {
  return model.config.modelTransactionPolicy?.decoupled ?? false;
}

/** ModelInfer: one request, one response. */
export function inferAnswer(
  plane: DataPlane,
  { access, admission, log, sharedMemory, tracer }: GrpcOptions,
): InferAnswer {
  return async (exchange) => {
    const { call } = exchange;
    let message: RequestMessage | undefined;
    let permit: Permit | undefined;
    try {
      message = readRequest(exchange.message);
      const { modelName: model } = message;
      let caller = anonymousCaller;
      if (access) {
        const known = admit(access, exchange.credentials(), { need: "infer", model });
        caller = known instanceof Promise ? await known : known;
        call.principal = caller;
      }
      const bytes = exchange.message.length;
      const entered = admission?.enter({ caller, call, model, bytes });
      permit = entered instanceof Promise ? await entered : entered;
      beginTrace(tracer, call, message.modelName, grpcMoments);
      const response = await infer(plane, message, exchange, sharedMemory);
      traceSending(call, grpcMoments);
      exchange.respond(null, response);
      if (log.verboseLevel > 0) {
        logAnswered(log, callFields(modelInferPath, call, message));
      }
    } catch (cause) {
      const error = clientError(cause, log, callFields(modelInferPath, call, message));
      traceFailure(call, error, grpcMoments);
      exchange.respond(callStatus(error));
    } finally {
      permit?.release();
    }
    endTrace(call, grpcMoments);
  };
}

/** The same as a method of grpc-js. */
export function modelInfer(
  answer: InferAnswer,
  { headerForwardPattern }: GrpcOptions,
): handleUnaryCall<Buffer, Buffer> {
  return (unary, respond) => {
    const call = callOf(unary.metadata);
    // grpc-js says "cancelled" of every call in the end, also of those that were answered.
    const cancel = (): void => call.cancel();
    unary.once("cancelled", cancel);
    void answer({
      call,
      message: unary.request,
      credentials: () => credentialsIn(unary.metadata),
      forwarded: () => forwardedHeaders(unary.metadata, headerForwardPattern),
      respond: (failure, response) => {
        const encoded = response && encodeResponse(response);
        unary.off("cancelled", cancel);
        respond(failure, encoded, timingMetadata(call));
      },
    });
  };
}

/** The text of HTTP's header, behind the response. */
function timingMetadata(call: Call): Metadata | undefined {
  const timing = serverTiming(call);
  if (timing === undefined) return undefined;
  const metadata = new Metadata();
  metadata.set("server-timing", timing);
  return metadata;
}

async function infer(
  plane: DataPlane,
  message: RequestMessage,
  exchange: InferExchange,
  sharedMemory: SharedMemoryRegions | undefined,
): Promise<InferenceResponse> {
  const found = plane.model(message.modelName, message.modelVersion);
  if (isDecoupled(found instanceof Promise ? await found : found)) {
    throw new InferenceError(
      StatusCode.Unsupported,
      "ModelInfer RPC doesn't support models with decoupled transaction policy",
    );
  }
  const memory = sharedMemory?.open();
  try {
    const request = inferenceRequest(message, exchange.forwarded(), memory);
    const response = await plane.infer(request, exchange.call);
    return memory ? memory.place(response) : response;
  } finally {
    memory?.close();
  }
}
