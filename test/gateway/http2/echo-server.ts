import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { Http2Connection, type Http2Options } from "../../../gateway/http2/connection.ts";
import { encodeHeaders } from "../../../gateway/http2/hpack-encoder.ts";
import type { RequestHead } from "../../../gateway/http2/request-head.ts";
import type { Http2Stream } from "../../../gateway/http2/stream.ts";

const head = encodeHeaders({ ":status": 200, "content-type": "application/octet-stream" });

/** Takes a request when its server has given it. */
export type Open = (stream: Http2Stream, head: RequestHead) => void;

/** What is not as with any other server. */
export interface EchoOptions extends Partial<
  Pick<Http2Options, "maxStreams" | "stallMilliseconds">
> {
  readonly open?: Open;
}

/** A server on loopback that speaks HTTP/2 by our own hands; it gives back each body when it is whole. */
export class EchoServer {
  readonly port: number;
  readonly connections: Http2Connection[] = [];
  /** As far as they have been told of. */
  readonly failures: unknown[] = [];
  /** Codes with which streams were over. */
  readonly closed: number[] = [];
  readonly heads: RequestHead[] = [];
  readonly #server = createServer({ noDelay: true }, (socket) => this.#connect(socket));
  readonly #open: Open;
  readonly #options: EchoOptions;

  static async start(options: EchoOptions = {}): Promise<EchoServer> {
    const server = new EchoServer(options);
    server.#server.listen(server.port, "127.0.0.1");
    await once(server.#server, "listening");
    return Object.assign(server, { port: portOf(server.#server.address()) });
  }

  private constructor(options: EchoOptions) {
    this.port = 0;
    this.#open = options.open ?? ((stream) => this.#echo(stream));
    this.#options = options;
  }

  /** Throws where something of ours has failed that nobody has looked at. */
  async stop(): Promise<void> {
    for (const connection of this.connections) connection.destroy();
    this.#server.close();
    await once(this.#server, "close");
    for (const failure of this.failures) throw failure;
  }

  #connect(socket: Socket): void {
    this.connections.push(
      new Http2Connection(socket, {
        maxStreams: 100,
        ...this.#options,
        failed: (error) => this.failures.push(error),
        open: (stream, given) => {
          this.heads.push(given);
          this.#open(stream, given);
        },
      }),
    );
  }

  #echo(stream: Http2Stream): void {
    const pieces: Buffer[] = [];
    stream.reader = {
      data: (piece) => {
        pieces.push(Buffer.from(piece));
        stream.consume(piece.length);
      },
      end: () => {
        stream.respond(head);
        for (const piece of pieces) stream.write(piece);
        stream.end();
      },
      closed: (code) => this.closed.push(code),
    };
  }
}

function portOf(address: ReturnType<ReturnType<typeof createServer>["address"]>): number {
  if (typeof address !== "object" || !address) throw new Error("the server has no port");
  return address.port;
}
