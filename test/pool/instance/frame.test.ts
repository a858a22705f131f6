import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FrameReader, FrameWriter } from "../../../pool/instance/frame.ts";

type Item = number | Uint8Array | readonly Uint8Array[];

function plain(item: Item): number | Buffer {
  if (typeof item === "number") return item;
  return item instanceof Uint8Array ? Buffer.from(item) : Buffer.concat(item);
}

describe("FrameWriter", () => {
  it("is read back in order, with every run of bytes aligned for any datatype", () => {
    const part = fc.uint8Array({ maxLength: 20 });
    const item = fc.oneof(fc.double({ noNaN: true }), fc.array(part, { maxLength: 3 }), part);
    fc.assert(
      fc.property(fc.array(item), (items) => {
        const writer = new FrameWriter();
        for (const one of items) {
          if (typeof one === "number") writer.number(one);
          else if (one instanceof Uint8Array) writer.attach(Uint8Array.from(one).buffer);
          else writer.bytes(one);
        }
        const reader = new FrameReader(writer.finish());
        const read = items.map((one) =>
          typeof one === "number" ? reader.number() : reader.bytes(),
        );
        expect(read.map(plain)).toEqual(items.map(plain));
        expect(read.every((one) => typeof one === "number" || one.byteOffset % 8 === 0)).toBe(true);
        expect(reader.done).toBe(true);
      }),
    );
  });

  it("throws when more is read than was written", () => {
    expect(() => new FrameReader(new FrameWriter().finish()).number()).toThrow(RangeError);
  });
});
