import { EventEmitter } from "node:events";
import type { Duplex } from "node:stream";
import type { Http2Connection } from "./connection.ts";

/** A connection as far as grpc-js looks at node's `ServerHttp2Session`: to keep it alive, and to end it. */
export class NodeSession extends EventEmitter {
  readonly #connection: Http2Connection;
  closed = false;

  constructor(connection: Http2Connection) {
    super();
    this.#connection = connection;
    this.socket.once("close", () => {
      this.closed = true;
      this.emit("close");
    });
  }

  get socket(): Duplex {
    return this.#connection.socket;
  }

  get destroyed(): boolean {
    return this.socket.destroyed;
  }

  close(closed?: () => void): void {
    if (closed) this.once("close", closed);
    this.#connection.close();
  }

  destroy(): void {
    this.#connection.destroy();
  }

  goaway(code: number, lastStream: number): void {
    this.#connection.goAway(code, lastStream);
  }

  /** False where nobody can be asked. */
  ping(answered: (error: Error | null) => void): boolean {
    if (this.destroyed) return false;
    this.#connection.ping(() => answered(null));
    return true;
  }
}
