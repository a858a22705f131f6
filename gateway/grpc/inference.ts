import { type handleUnaryCall, Metadata } from "@grpc/grpc-js";
import type { Call } from "../../protocol/call.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { Parameters } from "../../protocol/parameters.ts";
import { clientError, logAnswered } from "../call-log.ts";
import type { DataPlane } from "../data-plane.ts";
import { serverTiming } from "../server-timing.ts";
import { callFields, callOf, forwardedHeaders } from "./call-context.ts";
import { inferenceRequest } from "./decode-request.ts";
import { encodeResponse } from "./encode-response.ts";
import { type CallStatus, callStatus } from "./error-status.ts";
import type { GrpcOptions } from "./options.ts";
import { readRequest } from "./request-message.ts";
import type { RequestMessage } from "./request-message.ts";

/** The path of ModelInfer's calls. */
export const modelInferPath = "/inference.GRPCInferenceService/ModelInfer";

/** One call of ModelInfer, whoever speaks HTTP/2 for it. */
export interface InferExchange {
  readonly call: Call;
  readonly message: Buffer;
  /** Bytes that the answer leaves free at its beginning. */
  readonly headroomBytes: number;
  /** The request parameters that come from headers; may throw an InferenceError. */
  forwarded(): Parameters;
  /** Ends the call, once. */
  respond(failure: CallStatus | null, answer?: Buffer): void;
}

/** Answers one call; never rejects. */
export type InferAnswer = (exchange: InferExchange) => Promise<void>;

/** True for a model that answers a request as often as it likes. */
export function isDecoupled(model: ServedModel): boolean {
  return model.config.modelTransactionPolicy?.decoupled ?? false;
}

/** ModelInfer: one request, one response. */
export function inferAnswer(plane: DataPlane, { log }: GrpcOptions): InferAnswer {
  return async (exchange) => {
    const { call } = exchange;
    let message: RequestMessage | undefined;
    try {
      message = readRequest(exchange.message);
      exchange.respond(null, await infer(plane, message, exchange));
      if (log.verboseLevel > 0) {
        logAnswered(log, callFields(modelInferPath, call.receivedAt, message));
      }
    } catch (error) {
      const fields = callFields(modelInferPath, call.receivedAt, message);
      exchange.respond(callStatus(clientError(error, log, fields)));
    }
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
      headroomBytes: 0,
      forwarded: () => forwardedHeaders(unary.metadata, headerForwardPattern),
      respond: (failure, response) => {
        unary.off("cancelled", cancel);
        respond(failure, response, timingMetadata(call));
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
): Promise<Buffer> {
  const found = plane.model(message.modelName, message.modelVersion);
  if (isDecoupled(found instanceof Promise ? await found : found)) {
    throw new InferenceError(
      StatusCode.Unsupported,
      "ModelInfer RPC doesn't support models with decoupled transaction policy",
    );
  }
  const request = inferenceRequest(message, exchange.forwarded());
  return encodeResponse(await plane.infer(request, exchange.call), exchange.headroomBytes);
}
