import type { Duplex } from "node:stream";
import { type Frame, FrameReader, type FrameSink } from "./frame-reader.ts";
import { FrameSender } from "./frame-sender.ts";
import { Greeting } from "./greeting.ts";
import { type Block, HeaderBlocks } from "./header-blocks.ts";
import { ownSettings } from "./own-settings.ts";
import {
  expectLength,
  expectStream,
  number31,
  protocolError,
  withoutPadding,
  withoutPriority,
} from "./payload.ts";
import { changedSettings } from "./peer-settings.ts";
import { areTrailers, type RequestHead } from "./request-head.ts";
import { connectionWindowBytes, Streams } from "./streams.ts";
import type { Http2Stream } from "./stream.ts";
import { ConnectionError, ErrorCode, Flag, FrameType, initial } from "./wire.ts";

/** Who connects must begin within this time. */
const greetingMilliseconds = 20_000;

/** A connection with an error is cut off when the other side does not end it; one that is closed waits as long to be heard. */
const farewellMilliseconds = 1000;

const largestStream = 2 ** 31 - 1;

const nothing = Buffer.alloc(0);

/** A request whose rest does not come, or whose answer is not taken, is broken off after this time or twice it. */
const defaultStallMilliseconds = 75_000;

export interface Http2Options {
  /** Requests that may be under way at once. */
  readonly maxStreams: number;
  /** @defaultValue 75_000 */
  readonly stallMilliseconds?: number;
  /** A request has begun; gives its stream a reader at once. */
  readonly open: (stream: Http2Stream, head: RequestHead) => void;
  /** Something of ours has failed; the connection is cut off. */
  readonly failed: (error: unknown) => void;
}

/**
 * The server's side of one HTTP/2 connection (RFC 9113), over any socket. Small requests pay for their frames and little
 * more; whatever a client does, it holds no more of the memory than the windows, the streams and the header blocks allow.
 */
export class Http2Connection implements FrameSink {
  readonly socket: Duplex;
  readonly #options: Http2Options;
  readonly #sender: FrameSender;
  readonly #streams: Streams;
  readonly #reader = new FrameReader(this);
  readonly #blocks = new HeaderBlocks();
  readonly #pings: (() => void)[] = [];
  readonly #patience: NodeJS.Timeout;
  readonly #watch: NodeJS.Timeout;
  /** Until it was heard. */
  #greeting: Greeting | undefined = new Greeting();
  #hasSettings = false;
  #isLeaving = false;
  #isOver = false;

  constructor(socket: Duplex, options: Http2Options) {
    this.socket = socket;
    this.#options = options;
    this.#sender = new FrameSender(socket);
    this.#streams = new Streams(this.#sender, options.maxStreams, () => this.#endWhenIdle());
    this.#patience = setTimeout(() => this.destroy(), greetingMilliseconds);
    const { stallMilliseconds = defaultStallMilliseconds } = options;
    this.#watch = setInterval(() => this.#streams.look(), stallMilliseconds);
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("drain", () => this.#drained());
    socket.on("end", () => socket.end());
    socket.on("error", ignore);
    socket.on("close", () => this.#closed());
    this.#sender.frame(FrameType.Settings, Flag.None, 0, ownSettings(options.maxStreams));
    this.#sender.window(0, connectionWindowBytes - initial.windowBytes);
  }

  /** Asks for no new request, and ends when those that were on their way have their answers. */
  close(): void {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    this.goAway(ErrorCode.NoError, largestStream);
    this.ping(() => this.#takeNoMore());
    setTimeout(() => this.#takeNoMore(), farewellMilliseconds).unref();
  }

  /** Says after which stream no request will be looked at. */
  goAway(code: number, lastStream: number): void {
    this.#sender.goAway(code, lastStream);
  }

  /** Asks whether the other side is there. */
  ping(answered: () => void): void {
    this.#pings.push(answered);
    this.#sender.frame(FrameType.Ping, Flag.None, 0, Buffer.alloc(8));
  }

  destroy(): void {
    this.socket.destroy();
  }

  data(id: number, piece: Buffer, ends: boolean): void {
    this.#expectInOrder(FrameType.Data);
    const streams = this.#streams;
    streams.take(piece.length);
    const stream = streams.get(id);
    if (stream) stream.receive(piece, ends);
    else streams.expectKnown("DATA", id);
  }

  frame(frame: Frame): void {
    const { type, flags, stream, payload } = frame;
    this.#expectInOrder(type);
    switch (type) {
      case FrameType.Data:
        return this.#paddedData(frame);
      case FrameType.Headers:
        return this.#headers(frame);
      case FrameType.Continuation:
        return this.#block(stream, payload, (flags & Flag.EndHeaders) !== 0);
      case FrameType.Priority:
        return this.#priority(stream, payload);
      case FrameType.RstStream:
        expectStream("RST_STREAM", stream, true);
        expectLength("RST_STREAM", payload, 4);
        return this.#streams.broken(stream, payload.readUInt32BE());
      case FrameType.Settings:
        return this.#settings(frame);
      case FrameType.PushPromise:
        throw protocolError("PUSH_PROMISE: given by a client");
      case FrameType.Ping:
        return this.#ping(frame);
      case FrameType.GoAway:
        return expectStream("GOAWAY", stream, false);
      case FrameType.WindowUpdate:
        return this.#windowUpdate(stream, payload);
    }
  }

  #receive(chunk: Buffer): void {
    if (this.#isOver) return;
    try {
      const frames = this.#greeting ? this.#greeted(this.#greeting, chunk) : chunk;
      if (frames && frames.length > 0) this.#reader.read(frames);
    } catch (error) {
      this.#fail(error);
    }
    // It may ask on when it has taken the answers.
    if (this.#sender.outflow.isFlooded) this.socket.pause();
  }

  /** What follows the greeting, once that is whole. */
  #greeted(greeting: Greeting, chunk: Buffer): Buffer | undefined {
    const rest = greeting.read(chunk);
    if (rest === null) this.destroy();
    if (!rest) return undefined;
    clearTimeout(this.#patience);
    this.#greeting = undefined;
    return rest;
  }

  #fail(error: unknown): void {
    this.#isOver = true;
    if (!(error instanceof ConnectionError)) {
      this.#options.failed(error);
      this.destroy();
      return;
    }
    this.#sender.goAway(error.code, this.#streams.last, error.message);
    this.#sender.flush();
    this.socket.end();
    setTimeout(() => this.destroy(), farewellMilliseconds).unref();
    this.#streams.finishAll(error.code);
  }

  #drained(): void {
    const { outflow } = this.#sender;
    outflow.flush();
    if (!outflow.isFlooded) this.socket.resume();
  }

  #closed(): void {
    this.#isOver = true;
    clearTimeout(this.#patience);
    clearInterval(this.#watch);
    this.#streams.finishAll(ErrorCode.Cancel);
  }

  /** The client has heard: what it asks now, it asks elsewhere, too. */
  #takeNoMore(): void {
    if (this.#streams.isClosing) return;
    this.#streams.isClosing = true;
    this.goAway(ErrorCode.NoError, this.#streams.last);
    this.#endWhenIdle();
  }

  #endWhenIdle(): void {
    const { isClosing, open } = this.#streams;
    if (!isClosing || open > 0) return;
    this.#sender.flush();
    this.socket.end();
  }

  #paddedData({ flags, stream: id, payload }: Frame): void {
    const streams = this.#streams;
    const body = withoutPadding(payload, flags);
    const padding = payload.length - body.length;
    streams.take(padding);
    streams.get(id)?.receivePadding(padding);
    this.data(id, body, (flags & Flag.EndStream) !== 0);
  }

  #headers({ flags, stream, payload }: Frame): void {
    expectStream("HEADERS", stream, true);
    const block = withoutPriority(withoutPadding(payload, flags), flags, stream);
    this.#blocks.begin(stream, (flags & Flag.EndStream) !== 0);
    this.#block(stream, block, (flags & Flag.EndHeaders) !== 0);
  }

  #block(id: number, payload: Buffer, isLast: boolean): void {
    const block = this.#blocks.add(id, payload, isLast);
    if (!block) return;
    const streams = this.#streams;
    const stream = streams.get(id);
    if (stream) return this.#trailers(stream, block);
    if (id > streams.last) return this.#request(block);
    // It has to be read all the same: it may change what later ones mean.
    this.#blocks.fields(block);
    streams.expectKnown("HEADERS", id);
  }

  #trailers(stream: Http2Stream, block: Block): void {
    const fields = this.#blocks.fields(block);
    if (block.endsStream && fields && areTrailers(fields)) stream.receiveEnd();
    else stream.reset(ErrorCode.ProtocolError);
  }

  #request(block: Block): void {
    const { stream: id, endsStream } = block;
    if (id % 2 === 0) throw protocolError(`HEADERS: given stream ${id}, expected an odd number`);
    const head = this.#blocks.head(block);
    const stream = this.#streams.begin(id, head);
    if (!stream || typeof head === "string") return;
    this.#options.open(stream, head);
    if (endsStream) stream.receiveEnd();
  }

  #priority(stream: number, payload: Buffer): void {
    expectStream("PRIORITY", stream, true);
    if (payload.length !== 5) this.#streams.fail("PRIORITY", stream, ErrorCode.FrameSizeError);
    else if (number31(payload) === stream) {
      this.#streams.fail("PRIORITY", stream, ErrorCode.ProtocolError);
    }
  }

  #settings({ flags, stream, payload }: Frame): void {
    expectStream("SETTINGS", stream, false);
    if ((flags & Flag.Ack) !== 0) return expectLength("SETTINGS", payload, 0);
    this.#hasSettings = true;
    const { outflow } = this.#sender;
    const before = outflow.settings.windowBytes;
    outflow.settings = changedSettings(outflow.settings, payload);
    this.#sender.frame(FrameType.Settings, Flag.Ack, 0, nothing);
    this.#streams.widen(outflow.settings.windowBytes - before);
  }

  #ping({ flags, stream, payload }: Frame): void {
    expectStream("PING", stream, false);
    expectLength("PING", payload, 8);
    if ((flags & Flag.Ack) !== 0) this.#pings.shift()?.();
    else this.#sender.frame(FrameType.Ping, Flag.Ack, 0, payload);
  }

  #windowUpdate(id: number, payload: Buffer): void {
    expectLength("WINDOW_UPDATE", payload, 4);
    const bytes = number31(payload);
    if (id === 0) {
      if (bytes === 0) throw protocolError("WINDOW_UPDATE: given 0");
      return this.#sender.outflow.widen(bytes);
    }
    const stream = this.#streams.get(id);
    if (!stream) return this.#streams.expectBegun("WINDOW_UPDATE", id);
    if (bytes === 0) return stream.reset(ErrorCode.ProtocolError);
    if (!stream.widen(bytes)) stream.reset(ErrorCode.FlowControlError);
  }

  #expectInOrder(type: number): void {
    if (!this.#hasSettings && type !== FrameType.Settings) {
      throw protocolError(`first frame: given type ${type}, expected SETTINGS`);
    }
    if (this.#blocks.isOpen && type !== FrameType.Continuation) {
      throw protocolError("header block: given another frame amid it");
    }
  }
}

function ignore(): void {}
