import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { anonymous, Call } from "../../protocol/call.ts";
import { endTrace, httpMoments } from "../trace-call.ts";
import { type PlainHead, plainHead } from "./plain-head.ts";
import { type ReplyBody, replyPieces } from "./reply-body.ts";

/** An answer as it goes out behind the status line. */
export interface PlainReply {
  readonly status: number;
  /** Names and values by turns. */
  readonly headers: readonly string[];
  readonly body: ReplyBody;
}

/** Answers one infer call; never rejects. */
export type AnswerPlain = (head: PlainHead, body: Buffer, call: Call) => Promise<PlainReply>;

export interface PlainConnectionOptions {
  readonly answer: AnswerPlain;
  readonly maxInputBytes: number;
  readonly keepAliveMilliseconds: number;
  readonly maxRequests: number;
  /** Takes over the connection for good; what it has sent and nobody has answered is read again from its stream. */
  readonly handOver: (socket: Socket, answered: number) => void;
}

/**
 * A connection on which only ordinary infer calls came so far. Such a client sends the same head again and again and
 * waits for each answer, so its bytes are read here, at half of what node's parser and its objects cost. At the first
 * request that is anything else, or does not come in one piece, the connection goes to node, which it never leaves.
 */
export class PlainConnection {
  readonly #socket: Socket;
  readonly #options: PlainConnectionOptions;
  readonly #receive = (chunk: Buffer): void => this.#received(chunk);
  readonly #end = (): void => this.#ended();
  readonly #timeout = (): void => this.#idle();
  #head: PlainHead | undefined;
  #call: Call | undefined;
  #answered = 0;
  /** Sent before its turn. */
  #early: Buffer[] = [];
  #closing = false;

  constructor(socket: Socket, options: PlainConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.on("data", this.#receive);
    socket.on("end", this.#end);
    socket.on("close", this.#end);
    socket.on("error", ignore);
    socket.on("timeout", this.#timeout);
    socket.setTimeout(options.keepAliveMilliseconds);
  }

  /** True while a call waits for its answer. */
  get answering(): boolean {
    return this.#call !== undefined;
  }

  /** Ends the connection, after the answer that is under way, if one is; a client that has never asked may still do it. */
  close(): void {
    this.#closing = true;
    if (!this.#call && this.#head) this.#socket.destroySoon();
  }

  #received(chunk: Buffer): void {
    if (this.#call) {
      this.#early.push(chunk);
      this.#socket.pause();
      return;
    }
    const head = this.#headOf(chunk);
    if (head && chunk.length === head.bytes.length + head.bodyLength) {
      void this.#answer(head, chunk.subarray(head.bytes.length));
    } else this.#handOver([chunk]);
  }

  #headOf(chunk: Buffer): PlainHead | undefined {
    const known = this.#head?.bytes;
    const same =
      known &&
      chunk.length >= known.length &&
      chunk.compare(known, 0, known.length, 0, known.length) === 0;
    if (same) return this.#head;
    const head = plainHead(chunk);
    if (!head || head.bodyLength > this.#options.maxInputBytes) return undefined;
    this.#head = head;
    return head;
  }

  async #answer(head: PlainHead, body: Buffer): Promise<void> {
    const call = new Call(anonymous, performance.now(), head.traceparent);
    this.#call = call;
    const reply = await this.#options.answer(head, body, call);
    this.#call = undefined;
    this.#answered += 1;
    if (this.#answered >= this.#options.maxRequests) this.#closing = true;
    const socket = this.#socket;
    if (socket.writable) this.#write(reply);
    endTrace(call, httpMoments);
    if (!socket.writable) return;
    if (this.#closing) socket.end();
    else if (this.#early.length > 0) this.#handOver(this.#early.splice(0));
    else if (socket.writableNeedDrain) this.#waitUntilTaken();
  }

  /** Who takes no answers gets no more of them. */
  #waitUntilTaken(): void {
    const socket = this.#socket;
    socket.pause();
    socket.once("drain", () => socket.resume());
  }

  #write({ status, headers, body }: PlainReply): void {
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
    for (let i = 0; i + 1 < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
    head += `Content-Length: ${body.length}\r\nDate: ${httpDate()}\r\n${this.#afterwards()}\r\n`;
    const socket = this.#socket;
    const pieces = replyPieces(body);
    if (typeof pieces === "string") {
      socket.write(head + pieces, "latin1");
      return;
    }
    socket.cork();
    socket.write(head, "latin1");
    for (const piece of pieces) socket.write(piece);
    socket.uncork();
  }

  #afterwards(): string {
    if (this.#closing) return "Connection: close\r\n";
    const seconds = Math.floor(this.#options.keepAliveMilliseconds / 1000);
    return `Connection: keep-alive\r\nKeep-Alive: timeout=${seconds}\r\n`;
  }

  #ended(): void {
    this.#call?.cancel();
    this.#socket.end();
  }

  /** A model may take its time; a client that asks nothing may not. */
  #idle(): void {
    if (!this.#call) this.#socket.destroy();
  }

  #handOver(unread: readonly Buffer[]): void {
    const socket = this.#socket;
    socket.off("data", this.#receive);
    socket.off("end", this.#end);
    socket.off("close", this.#end);
    socket.off("error", ignore);
    socket.off("timeout", this.#timeout);
    socket.setTimeout(0);
    socket.pause();
    socket.unshift(Buffer.concat(unread));
    this.#options.handOver(socket, this.#answered);
    socket.resume();
  }
}

/** "close" follows, which says all. */
function ignore(): void {}

let dateText = "";
let dateSecond = NaN;

/** The `Date` header of now; made once a second. */
function httpDate(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    dateText = new Date(second * 1000).toUTCString();
  }
  return dateText;
}
