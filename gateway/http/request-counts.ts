import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Counts the requests of connections, whoever reads them. */
export class RequestCounts {
  readonly #max: number;
  readonly #counts = new WeakMap<Socket, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Tells what was answered on a connection before node got it. */
  begin(socket: Socket, answered: number): void {
    if (this.#max < Infinity) this.#counts.set(socket, answered);
  }

  /** Makes the answer to the last request end the connection. */
  count({ socket }: IncomingMessage, answer: ServerResponse): void {
    if (this.#max === Infinity) return;
    const count = (this.#counts.get(socket) ?? 0) + 1;
    this.#counts.set(socket, count);
    if (count >= this.#max) answer.setHeader("Connection", "close");
  }
}
