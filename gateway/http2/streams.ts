import { CostBudget } from "./cost-budget.ts";
import type { FrameSender } from "./frame-sender.ts";
import { Inflow } from "./inflow.ts";
import { protocolError } from "./payload.ts";
import type { RequestHead } from "./request-head.ts";
import { StreamTable } from "./stream-table.ts";
import { Http2Stream, type StreamHost } from "./stream.ts";
import { ConnectionError, ErrorCode } from "./wire.ts";

/** Bodies of all streams that may be on their way before any of it was read. */
export const connectionWindowBytes = 16 * 1024 * 1024;

/** What a client has us break a stream off for. */
const faults: ReadonlySet<number> = new Set([
  ErrorCode.ProtocolError,
  ErrorCode.FlowControlError,
  ErrorCode.StreamClosed,
  ErrorCode.FrameSizeError,
]);

/** The streams of one connection, and what it takes from all of them together. */
export class Streams implements StreamHost {
  readonly sender: FrameSender;
  readonly #table = new StreamTable<Http2Stream>();
  readonly #budget = new CostBudget();
  /**
   * Those that we broke off: what was under way for them then means nothing. At least as many are remembered as a client
   * may have open, because it may know of none of it yet.
   */
  #broken = new Set<number>();
  #brokenBefore = new Set<number>();
  #came = false;
  readonly #inflow = new Inflow(connectionWindowBytes, (bytes) => this.sender.window(0, bytes));
  readonly #maxOpen: number;
  readonly #ended: () => void;
  /** The last one that was looked at. */
  last = 0;
  /** Later ones are not looked at any more. */
  isClosing = false;

  /** @param ended called when one has ended */
  constructor(sender: FrameSender, maxOpen: number, ended: () => void) {
    this.sender = sender;
    this.#maxOpen = maxOpen;
    this.#ended = ended;
  }

  get open(): number {
    return this.#table.size;
  }

  get(id: number): Http2Stream | undefined {
    return this.#table.get(id);
  }

  /** The stream of a request; undefined where it has been refused. */
  begin(id: number, head: RequestHead | "malformed" | "too large"): Http2Stream | undefined {
    // Whoever was told of the end asks again elsewhere.
    if (this.isClosing) return undefined;
    this.last = id;
    if (head === "malformed") return this.#refuse(id, ErrorCode.ProtocolError);
    if (head === "too large") return this.#refuse(id, ErrorCode.EnhanceYourCalm);
    if (this.#table.size >= this.#maxOpen) return this.#refuse(id, ErrorCode.RefusedStream);
    const { windowBytes } = this.sender.outflow.settings;
    const stream = new Http2Stream(this, id, windowBytes, head.contentLength);
    this.#table.add(stream);
    return stream;
  }

  /** The other side has broken one off. */
  broken(id: number, code: number): void {
    this.expectBegun("RST_STREAM", id);
    const stream = this.#table.get(id);
    if (!stream) return;
    this.#budget.spend(performance.now());
    // Without a reason it is broken off all the same.
    stream.finish(code || ErrorCode.Cancel);
  }

  /** What the other side has said of one makes no sense: it ends, or the connection where it is not open. */
  fail(what: string, id: number, code: number): void {
    const stream = this.#table.get(id);
    if (!stream) throw new ConnectionError(code, `${what}: given a wrong one for stream ${id}`);
    stream.reset(code);
  }

  /** The other side takes so much more of each. */
  widen(bytes: number): void {
    if (bytes === 0) return;
    this.#budget.spend(performance.now());
    for (const stream of this.#table.all()) {
      if (!stream.widen(bytes)) {
        throw new ConnectionError(ErrorCode.FlowControlError, "stream: given too large a window");
      }
    }
  }

  /** Breaks one off, which is not known any more. */
  reset(id: number, code: number): void {
    if (faults.has(code)) this.#budget.spend(performance.now());
    if (this.#broken.size >= this.#maxOpen) {
      this.#brokenBefore = this.#broken;
      this.#broken = new Set();
    }
    this.#broken.add(id);
    this.sender.reset(id, code);
  }

  /** So many bytes of bodies have come. There is room for more at once: no request waits for the reader of another. */
  take(bytes: number): void {
    if (!this.#inflow.take(bytes)) {
      const text = "connection: given more than its window";
      throw new ConnectionError(ErrorCode.FlowControlError, text);
    }
    this.#came ||= bytes > 0;
    this.#inflow.consumed(bytes);
  }

  finished(stream: Http2Stream): void {
    this.#table.delete(stream.id);
    this.sender.outflow.forget(stream);
    this.#ended();
  }

  /** Breaks off those whose clients have neither sent nor taken anything since the last look. */
  look(): void {
    const movement = { came: this.#came, went: this.sender.outflow.moved };
    this.#came = false;
    this.sender.outflow.moved = false;
    for (const stream of this.#table.all()) stream.look(movement);
  }

  finishAll(code: number): void {
    for (const stream of this.#table.all()) stream.finish(code);
  }

  /** Of a stream that is not open: it must have been, and not have ended by itself. */
  expectKnown(what: string, id: number): void {
    this.expectBegun(what, id);
    if (id > this.last || this.#broken.has(id) || this.#brokenBefore.has(id)) return;
    throw new ConnectionError(
      ErrorCode.StreamClosed,
      `${what}: given for stream ${id}, which ended`,
    );
  }

  expectBegun(what: string, id: number): void {
    if (id !== 0 && (id <= this.last || this.isClosing)) return;
    throw protocolError(`${what}: given for stream ${id}, which has not begun`);
  }

  #refuse(id: number, code: number): undefined {
    this.reset(id, code);
  }
}
