import type { FrameSender } from "./frame-sender.ts";
import { Inflow } from "./inflow.ts";
import { ErrorCode, Flag, FrameType, largestWindowBytes } from "./wire.ts";

/** So much of one request may be on its way before any of it was consumed. */
export const streamWindowBytes = 4 * 1024 * 1024;

const nothing = Buffer.alloc(0);

/** Who takes a request. */
export interface StreamReader {
  /** True while it holds what has come and needs the rest of it. */
  readonly isWaiting?: boolean;
  /** A piece of the body; to be consumed when there is room for more. */
  data(piece: Buffer): void;
  /** The body is whole. */
  end(): void;
  /** Nothing comes or goes any more: both sides have ended, or one has broken off. */
  closed(code: number): void;
}

/** What a stream needs of its connection. */
export interface StreamHost {
  readonly sender: FrameSender;
  /** Breaks it off. */
  reset(stream: number, code: number): void;
  finished(stream: Http2Stream): void;
}

/** What happened on a whole connection since it was last looked at: a stream may wait for the others. */
export interface Movement {
  /** Bodies of requests. */
  readonly came: boolean;
  /** Bodies of responses. */
  readonly went: boolean;
}

interface Pending {
  bytes: Uint8Array;
  readonly sent: (() => void) | undefined;
}

const nobody: StreamReader = { data: () => {}, end: () => {}, closed: () => {} };

/** A request and its response. */
export class Http2Stream {
  readonly id: number;
  readonly #host: StreamHost;
  reader: StreamReader = nobody;
  isClosed = false;
  /** It is new, or something went since it was last looked at. */
  #moved = true;
  #remoteEnded = false;
  #sendBytes: number;
  readonly #inflow = new Inflow(streamWindowBytes, (bytes) =>
    this.#host.sender.window(this.id, bytes),
  );
  /** Of the body as announced. */
  #expectedBytes: number;
  #pending: Pending[] = [];
  #trailers: Buffer | undefined;
  #ending = false;

  /** @param sendBytes the other side's window */
  constructor(host: StreamHost, id: number, sendBytes: number, expectedBytes = Infinity) {
    this.#host = host;
    this.id = id;
    this.#sendBytes = sendBytes;
    this.#expectedBytes = expectedBytes;
  }

  /** A piece of the request's body has come. */
  receive(piece: Buffer, ends: boolean): void {
    const { length } = piece;
    this.#expectedBytes -= length;
    if (this.#remoteEnded) return this.reset(ErrorCode.StreamClosed);
    if (!this.#inflow.take(length)) return this.reset(ErrorCode.FlowControlError);
    if (this.#expectedBytes < 0) return this.reset(ErrorCode.ProtocolError);
    if (length > 0) this.reader.data(piece);
    if (ends) this.receiveEnd();
  }

  /** What comes with a body and is none of it. */
  receivePadding(bytes: number): void {
    if (this.#inflow.take(bytes)) this.consume(bytes);
    else this.reset(ErrorCode.FlowControlError);
  }

  /** The request's body has come whole. */
  receiveEnd(): void {
    if (this.isClosed) return;
    if (this.#remoteEnded) return this.reset(ErrorCode.StreamClosed);
    if (this.#expectedBytes > 0 && this.#expectedBytes < Infinity) {
      return this.reset(ErrorCode.ProtocolError);
    }
    this.#remoteEnded = true;
    this.reader.end();
  }

  /** Gives room for so much more of the body. */
  consume(bytes: number): void {
    if (!this.isClosed && !this.#remoteEnded) this.#inflow.consumed(bytes);
  }

  /** The response's head. @param ends it is all of the response */
  respond(block: Buffer, ends = false): void {
    if (this.isClosed) return;
    this.#host.sender.headers(this.id, block, ends);
    if (ends) this.#ended();
  }

  /** A piece of the response's body. @param sent called when it is on its way; never, where the stream ends before */
  write(bytes: Uint8Array, sent?: () => void): void {
    if (this.isClosed) return;
    this.#pending.push({ bytes, sent });
    if (this.#pending.length === 1) this.flush();
  }

  /** Ends the response behind all that was written. */
  end(trailers?: Buffer): void {
    this.#trailers = trailers;
    this.#ending = true;
    if (this.#pending.length === 0) this.flush();
  }

  flush(): void {
    if (this.isClosed) return;
    for (let next = this.#pending[0]; next; next = this.#pending[0]) {
      if (!this.#sent(next)) return;
      this.#pending.shift();
      next.sent?.();
    }
    // Who was told that all is on its way may have ended it.
    if (!this.#ending || this.isClosed) return;
    if (this.#trailers) this.#host.sender.headers(this.id, this.#trailers, true);
    else this.#host.sender.frame(FrameType.Data, Flag.EndStream, this.id, nothing);
    this.#ended();
  }

  /** The other side takes so much more; it may be less than nothing. False where that is more than there can be. */
  widen(bytes: number): boolean {
    this.#sendBytes += bytes;
    if (this.#sendBytes > largestWindowBytes) return false;
    this.flush();
    return true;
  }

  /** Breaks off if nothing has moved since the last look, and it is the client who has to move. */
  look({ came, went }: Movement): void {
    const isStill = !this.#moved;
    this.#moved = false;
    if (!isStill) return;
    const untaken = this.#pending.length > 0 && (this.#sendBytes <= 0 || !went);
    const unsaid = this.reader.isWaiting === true && !came;
    if (untaken || unsaid) this.reset(ErrorCode.Cancel);
  }

  /** Breaks off. */
  reset(code: number): void {
    if (this.isClosed) return;
    this.#host.reset(this.id, code);
    this.finish(code);
  }

  /** Nothing comes or goes any more. */
  finish(code: number): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#pending = [];
    this.#host.finished(this);
    const { reader } = this;
    this.reader = nobody;
    reader.closed(code);
  }

  /** True when all of it is on its way. */
  #sent(next: Pending): boolean {
    const { sender } = this.#host;
    while (next.bytes.length > 0) {
      if (this.#sendBytes <= 0) return false;
      const bytes = sender.outflow.take(Math.min(next.bytes.length, this.#sendBytes), this);
      if (bytes === 0) return false;
      this.#moved = true;
      this.#sendBytes -= bytes;
      sender.frame(FrameType.Data, Flag.None, this.id, next.bytes.subarray(0, bytes));
      next.bytes = next.bytes.subarray(bytes);
    }
    return true;
  }

  #ended(): void {
    // Whoever still sends a body sends it in vain.
    if (this.#remoteEnded) this.finish(ErrorCode.NoError);
    else this.reset(ErrorCode.NoError);
  }
}
