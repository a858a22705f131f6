import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { type Server, status } from "@grpc/grpc-js";
import type { Credentials } from "../../auth/authenticator.ts";
import { anonymous, Call } from "../../protocol/call.ts";
import { noParameters } from "../../protocol/parameters.ts";
import { GatheredBytes } from "../gathered-bytes.ts";
import { serverTiming } from "../server-timing.ts";
import { encodeResponseFrame, largestMessageBytes, prefixBytes } from "./encode-response.ts";
import type { CallStatus } from "./error-status.ts";
import { http2Servers } from "./http2-servers.ts";
import { type InferAnswer, modelInferPath } from "./inference.ts";

const contentType = { "content-type": "application/grpc+proto" };
const answerHeaders = { ...contentType, "grpc-accept-encoding": "identity,deflate,gzip" };
const answerOptions = { waitForTrailers: true, sendDate: false };
const success = { "grpc-status": String(status.OK) };

/**
 * Takes ordinary calls of ModelInfer past grpc-js, whose layers cost more than all else that is done for a small one.
 * What is unusual about a call, such as a deadline or a compressed message, leaves it to grpc-js, so that every rule about
 * it stands in one place. Interceptors are passed by: where there are some, no lane
 * may be.
 */
export function addFastLane(server: Server, answer: InferAnswer): void {
  for (const http2Server of http2Servers(server)) {
    const ordinary = http2Server.listeners("stream");
    http2Server.removeAllListeners("stream");
    http2Server.on("stream", (stream, headers, ...rest) => {
      const leave = (): void => {
        for (const listener of ordinary) {
          Reflect.apply(listener, http2Server, [stream, headers, ...rest]);
        }
      };
      if (stream.endAfterHeaders || !isOrdinary(headers)) return leave();
      const { traceparent } = headers;
      const arrival = {
        receivedAt: performance.now(),
        traceparent: typeof traceparent === "string" ? traceparent : undefined,
        credentials: () => credentialsIn(headers),
        message: new GatheredBytes(),
        length: 0,
        leave,
      };
      receive(stream, arrival, answer);
    });
  }
}

function isOrdinary(headers: IncomingHttpHeaders): boolean {
  return (
    headers[":path"] === modelInferPath &&
    headers["content-type"]?.startsWith("application/grpc") === true &&
    headers["grpc-timeout"] === undefined &&
    headers["grpc-encoding"] === undefined
  );
}

function credentialsIn(headers: IncomingHttpHeaders): Credentials {
  const { authorization, "x-api-key": apiKey } = headers;
  return { authorization, apiKey: typeof apiKey === "string" ? apiKey : apiKey?.join(", ") };
}

/** A call that has not been taken yet. */
interface Arrival {
  readonly receivedAt: number;
  readonly traceparent: string | undefined;
  readonly credentials: () => Credentials;
  /** With its prefix, as far as it has come. */
  readonly message: GatheredBytes;
  /** What it has when it is whole; 0 until the first piece is there. */
  length: number;
  /** Gives the call to grpc-js. */
  readonly leave: () => void;
}

/** Waits for the one message of a call, and gives the call back with all that came where it is not what one expects. */
function receive(stream: ServerHttp2Stream, first: Arrival, answer: InferAnswer): void {
  // Forgotten when it is over: a stream that has ended stays in memory longer than what it brought should.
  let arrival: Arrival | undefined = first;
  const onData = (chunk: Buffer): void => {
    if (!arrival) return;
    const { message, leave } = arrival;
    if (message.size === 0) arrival.length = lengthOf(chunk);
    if (message.size + chunk.length <= arrival.length) {
      message.add(chunk, arrival.length);
      return;
    }
    arrival = undefined;
    stream.off("data", onData).off("end", onEnd).pause();
    stream.unshift(chunk);
    if (message.size > 0) stream.unshift(message.bytes);
    leave();
  };
  const onEnd = (): void => {
    if (arrival) run(stream, arrival, answer);
    arrival = undefined;
  };
  // Its "close" tells all that there is to know.
  stream.on("error", ignore);
  stream.on("data", onData);
  stream.on("end", onEnd);
}

function ignore(): void {}

function run(stream: ServerHttp2Stream, arrival: Arrival, answer: InferAnswer): void {
  const { message, length, receivedAt, traceparent, credentials } = arrival;
  if (message.size === 0 || message.size < length) return respond(stream, noMessage);
  const call = new Call(anonymous, receivedAt, traceparent);
  let answered = false;
  stream.once("close", () => {
    if (!answered) call.cancel();
  });
  void answer({
    call,
    message: message.bytes.subarray(prefixBytes),
    credentials,
    forwarded: () => noParameters,
    respond: (failure, response) => {
      const frame = response && encodeResponseFrame(response);
      answered = true;
      respond(stream, failure, frame, serverTiming(call));
    },
  });
}

/** Of the message with its prefix, by its first piece; 0 for a message that is not for this lane. */
function lengthOf(piece: Buffer): number {
  if (piece.length < prefixBytes || piece[0] !== 0) return 0;
  const length = piece.readUInt32BE(1);
  return length <= largestMessageBytes ? prefixBytes + length : 0;
}

/** In the words of grpc-js, which says so of every kind of call. */
const noMessage: CallStatus = {
  code: status.UNIMPLEMENTED,
  details: `Received no request message for server streaming method ${modelInferPath}`,
};

function respond(
  stream: ServerHttp2Stream,
  failure: CallStatus | null,
  frame?: readonly Uint8Array[],
  timing?: string,
): void {
  if (stream.destroyed || stream.closed) return;
  if (failure || !frame) {
    const { code, details } = failure ?? noMessage;
    const trailers = { "grpc-status": String(code), "grpc-message": encodeURI(details) };
    stream.respond({ ...contentType, ...trailers }, { endStream: true });
    return;
  }
  stream.respond(answerHeaders, answerOptions);
  const trailers = timing === undefined ? success : { ...success, "server-timing": timing };
  stream.once("wantTrailers", () => stream.sendTrailers(trailers));
  const [only = new Uint8Array()] = frame;
  if (frame.length === 1) {
    stream.end(only);
    return;
  }
  stream.cork();
  for (const piece of frame) stream.write(piece);
  stream.end();
}
