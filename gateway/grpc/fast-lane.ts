import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { type Server, status } from "@grpc/grpc-js";
import { anonymous, Call } from "../../protocol/call.ts";
import { noParameters } from "../../protocol/parameters.ts";
import { serverTiming } from "../server-timing.ts";
import type { CallStatus } from "./error-status.ts";
import { http2Servers } from "./http2-servers.ts";
import { type InferAnswer, modelInferPath } from "./inference.ts";

/** Before each message: whether it is compressed, and how long it is. */
const prefixBytes = 5;

const contentType = { "content-type": "application/grpc+proto" };
const answerHeaders = { ...contentType, "grpc-accept-encoding": "identity,deflate,gzip" };
const answerOptions = { waitForTrailers: true, sendDate: false };
const success = { "grpc-status": String(status.OK) };

/**
 * Takes ordinary calls of ModelInfer past grpc-js, whose layers cost more than all else that is done for a small one.
 * What is unusual about a call, such as a deadline, a compressed message or one that comes in pieces, leaves it to
 * grpc-js, so that every rule about it stands in one place. Interceptors are passed by: where there are some, no lane
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
        message: undefined,
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

/** A call that has not been taken yet. */
interface Arrival {
  readonly receivedAt: number;
  readonly traceparent: string | undefined;
  /** With its prefix, as soon as it is there. */
  message: Buffer | undefined;
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
    if (!message && isWholeMessage(chunk)) {
      arrival.message = chunk;
      return;
    }
    arrival = undefined;
    stream.off("data", onData).off("end", onEnd).pause();
    stream.unshift(chunk);
    if (message) stream.unshift(message);
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
  const { message, receivedAt, traceparent } = arrival;
  if (!message) return respond(stream, noMessage);
  const call = new Call(anonymous, receivedAt, traceparent);
  let answered = false;
  stream.once("close", () => {
    if (!answered) call.cancel();
  });
  void answer({
    call,
    message: message.subarray(prefixBytes),
    headroomBytes: prefixBytes,
    forwarded: () => noParameters,
    respond: (failure, response) => {
      answered = true;
      respond(stream, failure, response, serverTiming(call));
    },
  });
}

function isWholeMessage(chunk: Buffer): boolean {
  if (chunk.length < prefixBytes || chunk[0] !== 0) return false;
  return chunk.readUInt32BE(1) === chunk.length - prefixBytes;
}

const noMessage: CallStatus = {
  code: status.UNIMPLEMENTED,
  details: `Received no request message for method ${modelInferPath}`,
};

function respond(
  stream: ServerHttp2Stream,
  failure: CallStatus | null,
  response?: Buffer,
  timing?: string,
): void {
  if (stream.destroyed || stream.closed) return;
  if (failure || !response) {
    const { code, details } = failure ?? noMessage;
    const trailers = { "grpc-status": String(code), "grpc-message": encodeURI(details) };
    stream.respond({ ...contentType, ...trailers }, { endStream: true });
    return;
  }
  response[0] = 0;
  response.writeUInt32BE(response.length - prefixBytes, 1);
  stream.respond(answerHeaders, answerOptions);
  const trailers = timing === undefined ? success : { ...success, "server-timing": timing };
  stream.once("wantTrailers", () => stream.sendTrailers(trailers));
  stream.end(response);
}
