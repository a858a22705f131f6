import { PassThrough } from "node:stream";
import { beforeEach, describe, expect, it } from "vitest";
import { FrameSender } from "../../../gateway/http2/frame-sender.ts";
import type { Http2Stream } from "../../../gateway/http2/stream.ts";
import { Streams } from "../../../gateway/http2/streams.ts";

let sender: FrameSender;
let streams: Streams;
let broken: number[];
beforeEach(() => {
  sender = new FrameSender(new PassThrough());
  streams = new Streams(sender, 10, () => {});
  broken = [];
});

/** A new request. @param isWaiting its reader needs the rest of it */
function begin(id: number, isWaiting = false): Http2Stream {
  const stream = streams.begin(id, { headers: {}, contentLength: undefined });
  if (!stream) throw new Error(`stream ${id} was refused`);
  stream.reader = { isWaiting, data: () => {}, end: () => {}, closed: () => broken.push(id) };
  return stream;
}

describe("Streams", () => {
  it("breaks no answer off that waits while others of its connection are taken", () => {
    // The connection's window holds one of them.
    for (const id of [1, 3, 5]) begin(id).write(Buffer.alloc(60_000));
    for (let i = 0; i < 4; i++) {
      sender.outflow.widen(1);
      streams.look();
    }
    expect(broken).toEqual([]);
    for (let i = 0; i < 2; i++) streams.look();
    expect(broken).toEqual([3, 5]);
  });

  it("breaks an answer off whose own window is used up, also while others are taken", () => {
    begin(1).write(Buffer.alloc(65_535));
    sender.outflow.widen(1_000_000);
    const untaken = begin(3);
    untaken.write(Buffer.alloc(65_536));
    for (let i = 0; i < 2; i++) {
      begin(5 + 2 * i).write(Buffer.alloc(10));
      streams.look();
    }
    expect(broken).toEqual([3]);
  });

  it("breaks no request off whose rest waits while others of its connection come", () => {
    begin(1, true);
    begin(3, true);
    for (let i = 0; i < 4; i++) {
      streams.take(1);
      streams.look();
    }
    expect(broken).toEqual([]);
    streams.look();
    expect(broken).toEqual([1, 3]);
  });
});
