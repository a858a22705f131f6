import { status } from "@grpc/grpc-js";
import { anonymous, Call } from "../../protocol/call.ts";
import { InferenceError } from "../../protocol/error.ts";
import { noParameters } from "../../protocol/parameters.ts";
import type { Admission } from "../admission.ts";
import { GatheredBytes } from "../gathered-bytes.ts";
import { credentialsIn } from "../header-credentials.ts";
import { encodeHeaders } from "../http2/hpack-encoder.ts";
import type { RequestHead } from "../http2/request-head.ts";
import type { Http2Stream, StreamReader } from "../http2/stream.ts";
import { serverTiming } from "../server-timing.ts";
import { encodeResponseFrame, largestMessageBytes, prefixBytes } from "./encode-response.ts";
import { type CallStatus, callStatus } from "./error-status.ts";
import { type InferAnswer, modelInferPath } from "./inference.ts";

const answerStart = { ":status": 200, "content-type": "application/grpc+proto" };
const answerHead = encodeHeaders({
  ...answerStart,
  "grpc-accept-encoding": "identity,deflate,gzip",
});
const success = { "grpc-status": String(status.OK) };
const successTrailers = encodeHeaders(success);

const nothing = new GatheredBytes();

/**
 * True for the head of a call that goes past grpc-js, whose layers cost more than all else that is done for a small one.
 * What is unusual about a call, such as a deadline or a compressed message, leaves it to grpc-js, so that every rule about
 * it stands in one place.
 */
export function isOrdinary({ headers }: RequestHead): boolean {
  return (
    headers[":path"] === modelInferPath &&
    headers["content-type"]?.startsWith("application/grpc") === true &&
    headers["grpc-timeout"] === undefined &&
    headers["grpc-encoding"] === undefined
  );
}

/**
 * Gives a call to grpc-js whose message is not what one expects.
 * @param consumed what had come of the message before
 */
export type Leave = (consumed: Buffer, piece: Buffer) => void;

export interface OrdinaryCallParts {
  readonly answer: InferAnswer;
  /** Asked whether there is room for a message while that is on its way. */
  readonly admission: Admission | undefined;
}

/** A call of ModelInfer with an ordinary head: waits for its one message, and answers it. */
export class OrdinaryCall implements StreamReader {
  readonly #stream: Http2Stream;
  readonly #head: RequestHead;
  readonly #answer: InferAnswer;
  readonly #admission: Admission | undefined;
  readonly #leave: Leave;
  readonly #receivedAt = performance.now();
  /** With its prefix, as far as it has come. */
  #message = new GatheredBytes();
  /** What it has when it is whole; 0 until the first piece is there. */
  #length = 0;
  #call: Call | undefined;
  /** Lets go of the room for its message; set while that is on its way. */
  #arrived: (() => void) | undefined;
  #refused = false;
  /** For the rest of its message. */
  isWaiting = true;

  constructor(
    stream: Http2Stream,
    head: RequestHead,
    { answer, admission }: OrdinaryCallParts,
    leave: Leave,
  ) {
    this.#stream = stream;
    this.#head = head;
    this.#answer = answer;
    this.#admission = admission;
    this.#leave = leave;
  }

  data(piece: Buffer): void {
    const message = this.#message;
    if (message.size === 0) this.#begin(piece);
    if (this.#refused) {
      this.#stream.consume(piece.length);
      return;
    }
    if (message.size + piece.length > this.#length) {
      this.#letGo();
      this.#leave(message.bytes, piece);
      return;
    }
    message.add(piece, this.#length);
    this.#stream.consume(piece.length);
  }

  end(): void {
    this.isWaiting = false;
    // It is counted again by who answers.
    this.#letGo();
    if (this.#refused) return;
    const { size, bytes } = this.#message;
    // It may be long until a large answer is taken.
    this.#message = nothing;
    if (size === 0 || size < this.#length) return this.#fail(noMessage);
    const { traceparent } = this.#head.headers;
    const parent = typeof traceparent === "string" ? traceparent : undefined;
    const call = new Call(anonymous, this.#receivedAt, parent);
    this.#call = call;
    void this.#answer({
      call,
      message: bytes.subarray(prefixBytes),
      credentials: () => credentialsIn(this.#head.headers),
      forwarded: () => noParameters,
      respond: (failure, response) => {
        const frame = response && encodeResponseFrame(response);
        this.#call = undefined;
        if (failure || !frame) this.#fail(failure ?? noMessage);
        else this.#respond(frame, serverTiming(call));
      },
    });
  }

  closed(): void {
    this.#letGo();
    this.#call?.cancel();
  }

  /** Learns how long the message is, and refuses it at once when there is no room for it. */
  #begin(piece: Buffer): void {
    this.#length = lengthOf(piece);
    // A small one is here already.
    if (this.#length <= piece.length || this.#refused) return;
    try {
      this.#arrived = this.#admission?.arrive(this.#length);
    } catch (error) {
      this.#refused = true;
      this.#fail(callStatus(InferenceError.from(error)));
    }
  }

  #letGo(): void {
    this.#arrived?.();
    this.#arrived = undefined;
  }

  #fail({ code, details, metadata }: CallStatus): void {
    const trailers = {
      ...metadata?.toHttp2Headers(),
      "grpc-status": String(code),
      "grpc-message": encodeURI(details),
    };
    this.#stream.respond(encodeHeaders({ ...answerStart, ...trailers }), true);
  }

  #respond(frame: readonly Uint8Array[], timing: string | undefined): void {
    const stream = this.#stream;
    stream.respond(answerHead);
    for (const piece of frame) stream.write(piece);
    stream.end(
      timing === undefined
        ? successTrailers
        : encodeHeaders({ ...success, "server-timing": timing }),
    );
  }
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
