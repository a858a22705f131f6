import { describe, expect, it } from "vitest";
import { GatheredBytes } from "../../gateway/gathered-bytes.ts";

const mebibyte = 2 ** 20;

function gathered(pieces: readonly Buffer[], announced: number): GatheredBytes {
  const bytes = new GatheredBytes();
  for (const piece of pieces) bytes.add(piece, announced);
  return bytes;
}

describe("GatheredBytes", () => {
  it.each([
    ["known", 600],
    ["unknown", NaN],
    ["a lie", 10],
  ] as const)("puts pieces together when their length is %s", (_what, announced) => {
    const pieces = Array.from({ length: 6 }, (_, i) => Buffer.alloc(100, i));
    const { bytes, size } = gathered(pieces, announced);
    expect(size).toBe(600);
    expect(bytes.equals(Buffer.concat(pieces))).toBe(true);
  });

  it("does not copy what comes in one piece", () => {
    const piece = Buffer.alloc(100);
    expect(gathered([piece], 100).bytes).toBe(piece);
  });

  it("takes the announced memory once, and only when a part of it has come", () => {
    const piece = Buffer.alloc(16_384);
    const few = gathered([piece, piece], 64 * mebibyte);
    expect(few.bytes.buffer.byteLength).toBeLessThan(mebibyte);
    const many = gathered(
      Array.from({ length: 64 }, () => piece),
      mebibyte,
    );
    expect(many.bytes.buffer.byteLength).toBe(mebibyte);
    const half = gathered(
      Array.from({ length: 32 }, () => piece),
      mebibyte,
    );
    expect(half.bytes.buffer.byteLength).toBe(mebibyte);
  });
});
