import type { OutgoingHttpHeaders } from "node:http2";
import { Duplex } from "node:stream";
import { encodeHeaders } from "./hpack-encoder.ts";
import type { NodeSession } from "./node-session.ts";
import type { Http2Stream } from "./stream.ts";
import { ErrorCode } from "./wire.ts";

interface ResponseOptions {
  readonly endStream?: boolean;
  readonly waitForTrailers?: boolean;
}

/** A stream as far as grpc-js looks at node's `ServerHttp2Stream`. */
export class NodeStream extends Duplex {
  readonly session: NodeSession;
  readonly #stream: Http2Stream;
  /** Why it ended. */
  rstCode: number = ErrorCode.NoError;
  #waitsForTrailers = false;
  /** The request has come to its end. */
  #isWhole = false;
  /** Given, and not yet asked for. */
  #unreadBytes = 0;

  constructor(stream: Http2Stream, session: NodeSession) {
    super({ highWaterMark: 64 * 1024 });
    this.session = session;
    this.#stream = stream;
    stream.reader = {
      data: (piece) => this.#take(piece),
      end: () => {
        this.#isWhole = true;
        this.push(null);
      },
      closed: (code) => this.#ended(code),
    };
  }

  /** The response's head. */
  respond(
    headers: OutgoingHttpHeaders,
    { endStream = false, waitForTrailers = false }: ResponseOptions = {},
  ): void {
    this.#waitsForTrailers = waitForTrailers;
    this.#stream.respond(encodeHeaders({ ":status": 200, ...headers }), endStream);
    if (endStream) this.end();
  }

  sendTrailers(headers: OutgoingHttpHeaders): void {
    this.#stream.end(encodeHeaders(headers));
  }

  override _read(): void {
    if (this.#unreadBytes > 0) this.#stream.consume(this.#unreadBytes);
    this.#unreadBytes = 0;
  }

  override _write(chunk: Buffer, _encoding: string, written: () => void): void {
    if (this.#stream.isClosed) written();
    else this.#stream.write(chunk, written);
  }

  override _final(ended: () => void): void {
    if (this.#waitsForTrailers) this.emit("wantTrailers");
    else this.#stream.end();
    ended();
  }

  override _destroy(error: Error | null, destroyed: (error: Error | null) => void): void {
    this.#stream.reset(this.rstCode || ErrorCode.Cancel);
    destroyed(error);
  }

  #take(piece: Buffer): void {
    if (this.push(piece)) this.#stream.consume(piece.length);
    else this.#unreadBytes += piece.length;
  }

  #ended(code: number): void {
    this.rstCode = code;
    // What has come whole may still be read.
    if (code === ErrorCode.NoError && this.#isWhole) this.resume();
    else this.destroy();
  }
}
