import type { ServerResponse } from "node:http";
import { splitBody } from "../../protocol/binary-data.ts";
import { withCacheControl } from "../../protocol/cache-control.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { inferenceHeaderContentLength } from "../../protocol/headers.ts";
import { parseInfer } from "../../protocol/infer-json.ts";
import type { BinaryOutputs, ParsedInfer, RequestTarget } from "../../protocol/infer-json.ts";
import { inferReply } from "../../protocol/infer-reply.ts";
import type { InferReply } from "../../protocol/infer-reply.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import type { DataPlane } from "../data-plane.ts";
import { serverTiming } from "../server-timing.ts";
import { beginTrace, httpMoments, traceSending } from "../trace-call.ts";
import { readBody } from "./body.ts";
import {
  acceptedCodings,
  compress,
  decompress,
  requestCoding,
  responseCoding,
} from "./content-coding.ts";
import type { ContentCoding } from "./content-coding.ts";
import { cameFromEdge, mayKeep } from "./edge-call.ts";
import type { Exchange, ExchangeAnswer } from "./exchange.ts";
import { forwardedHeaders } from "./forwarded-headers.ts";
import { sendInferEvents, wantsEvents } from "./infer-events.ts";
import type { HttpOptions } from "./options.ts";
import { rawRequest } from "./raw-request.ts";
import { replyBody, replyHeaders, replyPieces } from "./reply-body.ts";

/** `POST …/infer`: one request, one response, each as JSON with or without binary tensor data behind it. */
export function inferAnswer(plane: DataPlane, options: HttpOptions): ExchangeAnswer {
  return (exchange) => infer(plane, options, exchange);
}

async function infer(plane: DataPlane, options: HttpOptions, exchange: Exchange): Promise<void> {
  const { incoming, outgoing, call, modelName, modelVersion } = exchange;
  const found = plane.model(modelName, modelVersion);
  const model = found instanceof Promise ? await found : found;
  refuseDecoupled(model);
  const body = await readInferBody(exchange, options.maxInputBytes);
  beginTrace(options.tracer, call, modelName, httpMoments);
  const memory = options.sharedMemory?.open();
  exchange.memory = memory;
  try {
    const { request, binaryOutputs } = parseInferBody(model, body, exchange, options);
    if (wantsEvents(incoming)) return await sendInferEvents(exchange, request, plane, options.log);
    const digest = digestForEdge(plane, exchange, options);
    const response = await plane.infer(request, call);
    // Another one may have been loaded meanwhile: who knows which of them has answered.
    if (digest !== undefined && digest === digestForEdge(plane, exchange, options))
      mayKeep(exchange, digest);
    const timing = serverTiming(call);
    if (timing !== undefined) outgoing.setHeader("Server-Timing", timing);
    traceSending(call, httpMoments);
    await sendResponse(exchange, memory ? memory.place(response) : response, binaryOutputs);
  } finally {
    memory?.close();
  }
}

/** Of the version that answers, where the edge Worker asks and all that the answer depends on is the request's body. */
function digestForEdge(
  plane: DataPlane,
  { incoming, modelName, modelVersion }: Exchange,
  { restrictions, headerForwardPattern }: HttpOptions,
): string | undefined {
  if (!cameFromEdge(incoming) || headerForwardPattern || restrictions?.has("inference"))
    return undefined;
  return plane.answersDigest(modelName, modelVersion);
}

/** Reads an infer request of the exchange's model from its body. */
export function parseInferBody(
  model: ServedModel,
  body: Uint8Array,
  exchange: Exchange,
  options: HttpOptions,
): ParsedInfer {
  const { incoming, modelName, modelVersion, memory } = exchange;
  const forwarded = forwardedHeaders(incoming.rawHeaders, options.headerForwardPattern);
  const jsonLength = headerText(incoming.headers[inferenceHeaderContentLength]);
  const target = { modelName, modelVersion, forwarded, memory };
  const parsed = parseBody(model, body, jsonLength, target);
  exchange.requestId = parsed.request.id;
  const request = withCacheControl(parsed.request, incoming.headers["cache-control"]);
  return { ...parsed, request };
}

/** Reads a body; `jsonLength` is what `Inference-Header-Content-Length` says. */
export function parseBody(
  model: ServedModel,
  body: Uint8Array,
  jsonLength: string | undefined,
  target: RequestTarget,
): ParsedInfer {
  const { head, tail } = splitBody(body, jsonLength);
  return head.length === 0 ? rawRequest(model, tail, target) : parseInfer(head, tail, target);
}

/** Answers with a response as its request wanted it. */
export function sendResponse(
  { incoming, outgoing }: Exchange,
  response: InferenceResponse,
  binaryOutputs: BinaryOutputs,
): Promise<void> {
  const coding = responseCoding(headerText(incoming.headers["accept-encoding"]));
  return sendReply(outgoing, inferReply(response, binaryOutputs), coding);
}

function headerText(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.join(", ");
}

/** One response is all that HTTP has room for. */
export function refuseDecoupled(model: ServedModel): void {
  if (!model.config.modelTransactionPolicy?.decoupled) return;
  throw new InferenceError(
    StatusCode.Unsupported,
    "HTTP end point doesn't support models with decoupled transaction policy",
  );
}

/** Reads the body, and decompresses it. */
export async function readInferBody(exchange: Exchange, limit: number): Promise<Buffer> {
  const body = await readDecompressed(exchange, limit);
  // It may be longer than announced, being compressed, or shorter, having announced nothing.
  exchange.call.permit?.hold(body.length);
  return body;
}

async function readDecompressed({ incoming, outgoing }: Exchange, limit: number): Promise<Buffer> {
  const contentEncoding = incoming.headers["content-encoding"];
  if (contentEncoding === undefined) return await readBody(incoming, outgoing, limit);
  // Tells the client that is refused below what it could have used.
  outgoing.setHeader("Accept-Encoding", acceptedCodings);
  const coding = requestCoding(contentEncoding);
  outgoing.removeHeader("Accept-Encoding");
  return decompress(await readBody(incoming, outgoing, limit), coding, limit);
}

async function sendReply(
  outgoing: ServerResponse,
  reply: InferReply,
  coding: ContentCoding,
): Promise<void> {
  const body = replyBody(reply);
  const headers = [...replyHeaders(body)];
  if (coding !== "identity") {
    const whole = Buffer.concat([Buffer.from(reply.head), ...reply.tail]);
    const compressed = await compress(whole, coding);
    headers.push("Content-Encoding", coding, "Content-Length", String(compressed.length));
    outgoing.writeHead(200, headers).end(compressed);
    return;
  }
  headers.push("Content-Length", String(body.length));
  outgoing.writeHead(200, headers);
  const pieces = replyPieces(body);
  if (typeof pieces === "string") {
    outgoing.end(pieces, "latin1");
    return;
  }
  // Corked until the end: one system call for all the pieces, and no copy of any tensor.
  outgoing.cork();
  for (const piece of pieces) outgoing.write(piece);
  outgoing.end();
}
