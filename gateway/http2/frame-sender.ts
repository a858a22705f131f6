import type { Duplex } from "node:stream";
import { FrameWriter } from "./frame-writer.ts";
import { Outflow } from "./outflow.ts";
import { number32 } from "./payload.ts";
import { Flag, FrameType } from "./wire.ts";

/** What a server says, as frames. */
export class FrameSender {
  readonly outflow: Outflow;
  readonly #writer: FrameWriter;

  constructor(socket: Duplex) {
    this.#writer = new FrameWriter(socket);
    this.outflow = new Outflow(this.#writer);
  }

  frame(type: number, flags: number, stream: number, payload: Uint8Array): void {
    this.#writer.write({ type, flags, stream, payload });
  }

  headers(stream: number, block: Buffer, endsStream: boolean): void {
    const ends = endsStream ? Flag.EndStream : Flag.None;
    const most = this.outflow.settings.frameBytes;
    if (block.length <= most) {
      this.frame(FrameType.Headers, ends | Flag.EndHeaders, stream, block);
      return;
    }
    this.frame(FrameType.Headers, ends, stream, block.subarray(0, most));
    for (let at = most; at < block.length; at += most) {
      const flags = at + most < block.length ? Flag.None : Flag.EndHeaders;
      this.frame(FrameType.Continuation, flags, stream, block.subarray(at, at + most));
    }
  }

  reset(stream: number, code: number): void {
    this.frame(FrameType.RstStream, Flag.None, stream, number32(code));
  }

  /** @param stream 0 for all together */
  window(stream: number, bytes: number): void {
    this.frame(FrameType.WindowUpdate, Flag.None, stream, number32(bytes));
  }

  /** @param lastStream after it no request will be looked at */
  goAway(code: number, lastStream: number, text = ""): void {
    const payload = Buffer.alloc(8 + text.length);
    payload.writeUInt32BE(lastStream >>> 0, 0);
    payload.writeUInt32BE(code, 4);
    payload.write(text, 8, "latin1");
    this.frame(FrameType.GoAway, Flag.None, 0, payload);
  }

  /** Does not wait for the end of the turn. */
  flush(): void {
    this.#writer.flush();
  }
}
