import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bf16Bits, bf16Value, fp16Bits, fp16Value } from "../../protocol/half-float.ts";

const allBits = Array.from({ length: 2 ** 16 }, (_, bits) => bits);

/** BF16 is the upper half of FP32. */
function upperHalf(bits: number): number {
  return new DataView(Uint32Array.of(bits * 2 ** 16).buffer).getFloat32(0, true);
}

describe.each([
  { name: "FP16", bitsOf: fp16Bits, valueOf: fp16Value, most: 65504, least: 2 ** -24 },
  {
    name: "BF16",
    bitsOf: bf16Bits,
    valueOf: bf16Value,
    most: 2 ** 128 - 2 ** 120,
    least: 2 ** -133,
  },
])("$name", ({ bitsOf, valueOf, most, least }) => {
  it("gives the bits of every value back", () => {
    const changed = allBits.filter((bits) => {
      const value = valueOf(bits);
      return Number.isNaN(value) ? !Number.isNaN(valueOf(bitsOf(value))) : bitsOf(value) !== bits;
    });
    expect(changed).toEqual([]);
  });

  it("chooses the nearest value and of two equally near ones the even", () => {
    fc.assert(
      fc.property(fc.double({ min: -most, max: most, noNaN: true }), (value) => {
        const bits = bitsOf(value);
        const error = Math.abs(valueOf(bits) - value);
        for (const neighbour of [bits - 1, bits + 1]) {
          const other = Math.abs(valueOf(neighbour & 0xffff) - value);
          if (Number.isNaN(other) || (neighbour & 0x8000) !== (bits & 0x8000)) continue;
          expect(error < other || (error === other && bits % 2 === 0)).toBe(true);
        }
      }),
    );
  });

  it("rounds ties to even at the ends of its range", () => {
    expect(valueOf(bitsOf(least / 2))).toBe(0);
    expect(valueOf(bitsOf(least * 0.75))).toBe(least);
    expect(valueOf(bitsOf(least * 1.5))).toBe(2 * least);
    expect(valueOf(bitsOf(most))).toBe(most);
    expect(valueOf(bitsOf(1e308))).toBe(Infinity);
    expect(valueOf(bitsOf(-Infinity))).toBe(-Infinity);
    expect(valueOf(bitsOf(-0))).toBe(-0);
  });
});

describe("bf16Value", () => {
  it("is the upper half of an FP32", () => {
    expect(allBits.filter((bits) => !Object.is(bf16Value(bits), upperHalf(bits)))).toEqual([]);
  });
});

describe("fp16Bits", () => {
  it("knows the numbers that everybody knows", () => {
    expect([1, -2, 65504, 65519, 65520, 0.1, 2 ** -14].map(fp16Bits)).toEqual([
      0x3c00, 0xc000, 0x7bff, 0x7bff, 0x7c00, 0x2e66, 0x0400,
    ]);
  });
});
