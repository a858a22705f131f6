import { withCacheControl } from "../../protocol/cache-control.ts";
import type {
  InferenceRequest,
  InferenceResponse,
  StreamedResponse,
} from "../../protocol/inference.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { generateReply, generateRequest } from "../../protocol/generate-json.ts";
import type { DataPlane } from "../data-plane.ts";
import { serverTiming } from "../server-timing.ts";
import { beginTrace, httpMoments, traceSending } from "../trace-call.ts";
import { admitted } from "./admitted.ts";
import { exchangeHandler, sendJson } from "./exchange.ts";
import type { Exchange, HttpHandler } from "./exchange.ts";
import { forwardedHeaders } from "./forwarded-headers.ts";
import { readJsonBody } from "./json-body.ts";
import type { HttpOptions } from "./options.ts";

/** `POST …/generate`: a flat JSON request and its one response. */
export function generateHandler(plane: DataPlane, options: HttpOptions): HttpHandler {
  const answer = admitted(options, async (exchange) => {
    const request = await readGenerate(plane, options, exchange);
    exchange.requestId = request.id;
    const response = await onlyResponse(plane.stream(request, exchange.call));
    const timing = serverTiming(exchange.call);
    if (timing !== undefined) exchange.outgoing.setHeader("Server-Timing", timing);
    traceSending(exchange.call, httpMoments);
    sendJson(exchange.outgoing, 200, generateReply(response));
  });
  return exchangeHandler(options.log, answer);
}

/** Reads the request of generate and of generate_stream. */
export async function readGenerate(
  plane: DataPlane,
  options: HttpOptions,
  exchange: Exchange,
): Promise<InferenceRequest> {
  const { incoming, outgoing, modelName, modelVersion } = exchange;
  const model = await plane.model(modelName, modelVersion);
  if ((incoming.headers["content-encoding"] ?? "identity") !== "identity") {
    throw new InferenceError(
      StatusCode.InvalidArg,
      "Unsupported content-encoding, only 'identity' is supported.",
    );
  }
  const forwarded = forwardedHeaders(incoming.rawHeaders, options.headerForwardPattern);
  const target = { modelName, modelVersion, forwarded };
  const request = await readJsonBody(incoming, outgoing, options.maxInputBytes, (document) =>
    generateRequest(document, model, target),
  );
  beginTrace(options.tracer, exchange.call, modelName, httpMoments);
  return withCacheControl(request, incoming.headers["cache-control"]);
}

async function onlyResponse(
  responses: AsyncIterable<StreamedResponse>,
): Promise<InferenceResponse> {
  let only: InferenceResponse | undefined;
  for await (const { response } of responses) {
    if (only) throw notOne();
    only = response;
  }
  if (!only) throw notOne();
  return only;
}

function notOne(): InferenceError {
  return new InferenceError(
    StatusCode.Internal,
    "generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses",
  );
}
