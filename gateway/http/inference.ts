import type { ServerResponse } from "node:http";
import { splitBody } from "../../protocol/binary-data.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { inferenceHeaderContentLength } from "../../protocol/headers.ts";
import { parseInfer } from "../../protocol/infer-json.ts";
import { inferReply } from "../../protocol/infer-reply.ts";
import type { InferReply } from "../../protocol/infer-reply.ts";
import type { DataPlane } from "../data-plane.ts";
import { readBody } from "./body.ts";
import {
  acceptedCodings,
  compress,
  decompress,
  requestCoding,
  responseCoding,
} from "./content-coding.ts";
import type { ContentCoding } from "./content-coding.ts";
import type { Exchange, ExchangeAnswer } from "./exchange.ts";
import { forwardedHeaders } from "./forwarded-headers.ts";
import type { HttpOptions } from "./options.ts";
import { rawRequest } from "./raw-request.ts";

/** `POST …/infer`: one request, one response, each as JSON with or without binary tensor data behind it. */
export function inferAnswer(plane: DataPlane, options: HttpOptions): ExchangeAnswer {
  return (exchange) => infer(plane, options, exchange);
}

async function infer(plane: DataPlane, options: HttpOptions, exchange: Exchange): Promise<void> {
  const { incoming, outgoing, call, modelName, modelVersion } = exchange;
  const found = plane.model(modelName, modelVersion);
  const model = found instanceof Promise ? await found : found;
  refuseDecoupled(model);
  const forwarded = forwardedHeaders(incoming.rawHeaders, options.headerForwardPattern);
  const body = await decodedBody(exchange, options.maxInputBytes);
  const { head, tail } = splitBody(
    body,
    headerText(incoming.headers[inferenceHeaderContentLength]),
  );
  const target = { modelName, modelVersion, forwarded };
  const { request, binaryOutputs } =
    head.length === 0 ? rawRequest(model, tail, target) : parseInfer(head, tail, target);
  exchange.requestId = request.id;
  const response = await plane.infer(request, call);
  const reply = inferReply(response, binaryOutputs);
  await sendReply(outgoing, reply, responseCoding(headerText(incoming.headers["accept-encoding"])));
}

function headerText(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.join(", ");
}

function refuseDecoupled(model: ServedModel): void {
  if (!model.config.modelTransactionPolicy?.decoupled) return;
  throw new InferenceError(
    StatusCode.Unsupported,
    "HTTP end point doesn't support models with decoupled transaction policy",
  );
}

async function decodedBody({ incoming, outgoing }: Exchange, limit: number): Promise<Buffer> {
  const contentEncoding = incoming.headers["content-encoding"];
  if (contentEncoding === undefined) return readBody(incoming, outgoing, limit);
  // Tells the client that is refused below what it could have used.
  outgoing.setHeader("Accept-Encoding", acceptedCodings);
  const coding = requestCoding(contentEncoding);
  outgoing.removeHeader("Accept-Encoding");
  return decompress(await readBody(incoming, outgoing, limit), coding, limit);
}

/** Up to this size node writes head and body of an answer as one string, which costs less than pieces without a copy. */
const smallBytes = 16_384;

async function sendReply(
  outgoing: ServerResponse,
  { head, tail }: InferReply,
  coding: ContentCoding,
): Promise<void> {
  const headLength = Buffer.byteLength(head);
  const headers =
    tail.length === 0
      ? ["Content-Type", "application/json"]
      : [
          "Content-Type",
          "application/octet-stream",
          "Inference-Header-Content-Length",
          String(headLength),
        ];
  if (coding !== "identity") {
    const whole = Buffer.concat([Buffer.from(head), ...tail]);
    const compressed = await compress(whole, coding);
    headers.push("Content-Encoding", coding, "Content-Length", String(compressed.length));
    outgoing.writeHead(200, headers).end(compressed);
    return;
  }
  let length = headLength;
  for (const bytes of tail) length += bytes.length;
  headers.push("Content-Length", String(length));
  outgoing.writeHead(200, headers);
  if (length <= smallBytes) {
    outgoing.end(Buffer.concat([Buffer.from(head), ...tail], length).toString("latin1"), "latin1");
    return;
  }
  // Corked until the end: one system call for all the pieces, and no copy of any tensor.
  outgoing.cork();
  outgoing.write(head);
  for (const bytes of tail) outgoing.write(bytes);
  outgoing.end();
}
