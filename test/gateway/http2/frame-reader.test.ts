import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FrameReader } from "../../../gateway/http2/frame-reader.ts";
import { Flag, FrameType } from "../../../gateway/http2/wire.ts";
import { rawFrame } from "./raw-client.ts";

/** What a reader finds: bodies by stream, and all other frames. */
function read(chunks: readonly Buffer[]): readonly string[] {
  const found: string[] = [];
  let body = "";
  const reader = new FrameReader({
    data: (stream, piece, ends) => {
      body += piece.toString("hex");
      if (ends) found.push(`${stream}: ${body}`);
      if (ends) body = "";
    },
    frame: ({ type, flags, stream, payload }) =>
      found.push(`${type} ${flags} ${stream} ${payload.toString("hex")}`),
  });
  for (const chunk of chunks) reader.read(chunk);
  return found;
}

const payload = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString("hex"));
const frame = fc.oneof(
  payload.map((bytes) => ({
    bytes: rawFrame(FrameType.Data, { flags: Flag.EndStream, stream: 3, payload: bytes }),
    text: `3: ${bytes}`,
  })),
  fc.tuple(fc.integer({ min: 1, max: 20 }), fc.nat(255), payload).map(([type, flags, bytes]) => ({
    bytes: rawFrame(type, { flags, stream: 7, payload: bytes }),
    text: `${type} ${flags} 7 ${bytes}`,
  })),
);

describe("FrameReader", () => {
  it("finds the same frames however their bytes are cut", () => {
    const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 });
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 12 }), cuts, (frames, sizes) => {
        const bytes = Buffer.concat(frames.map((each) => each.bytes));
        const chunks: Buffer[] = [];
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const end = at + (sizes[i % sizes.length] ?? 1);
          chunks.push(bytes.subarray(at, end));
          at = end;
        }
        expect(read(chunks)).toEqual(frames.map(({ text }) => text));
      }),
    );
  });

  it("hands on a body as it comes, without waiting for the rest of its frame", () => {
    const whole = rawFrame(FrameType.Data, { stream: 1, payload: "0102030405" });
    const pieces: string[] = [];
    const reader = new FrameReader({
      data: (_stream, piece) => pieces.push(piece.toString("hex")),
      frame: () => {},
    });
    reader.read(whole.subarray(0, 11));
    expect(pieces).toEqual(["0102"]);
    reader.read(whole.subarray(11));
    expect(pieces).toEqual(["0102", "030405"]);
  });

  it.each([
    ["DATA", FrameType.Data, 1024 * 1024],
    ["anything else", 20, 64 * 1024],
  ])("refuses %s that is too long as soon as its head is there", (_name, type, bound) => {
    const head = rawFrame(type);
    head.writeUIntBE(bound, 0, 3);
    expect(read([head])).toEqual([]);
    head.writeUIntBE(bound + 1, 0, 3);
    expect(() => read([head])).toThrow(`given ${bound + 1} bytes, expected ${bound} at most`);
  });
});
