import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BundleWriter, readBundle } from "../../queue/bundle.ts";

// JSON has no negative zero.
const json = fc.jsonValue().map((value): unknown => JSON.parse(JSON.stringify(value)));
const frame = fc.record({
  head: fc.record({ said: fc.oneof(json, fc.constantFrom(1, 2)) }),
  own: json,
  index: fc.nat({ max: 2 ** 32 - 1 }),
  number: fc.double({ noNaN: true }),
  parts: fc.array(fc.uint8Array({ maxLength: 40 })),
});

describe("BundleWriter", () => {
  it("keeps frames, empty ones too, and their order", () => {
    fc.assert(
      fc.property(fc.record({ of: json }), fc.array(frame), (common, frames) => {
        const writer = new BundleWriter(common);
        for (const one of frames) {
          writer.add({ ...one, head: writer.head(one.head), own: JSON.stringify(one.own) });
        }
        const read = readBundle(writer.finish());
        expect(read.common).toEqual(common);
        expect(read.frames).toEqual(
          frames.map(({ parts, ...rest }) => ({ ...rest, bytes: Buffer.concat(parts) })),
        );
      }),
    );
  });

  it("writes heads that are alike once", () => {
    const writer = new BundleWriter();
    const heads = ["a", "b", "a"].map((name) => writer.head({ name }));
    for (const head of heads) writer.add({ head, own: "", index: 0, number: 0, parts: [] });
    const bundle = writer.finish();
    expect(bundle.toString("latin1").match(/"name":"a"/gu)).toHaveLength(1);
    const [first, second, third] = readBundle(bundle).frames;
    expect(first?.head).toBe(third?.head);
    expect(second?.head).toEqual({ name: "b" });
  });

  it("lets a frame have what is said of all as its head", () => {
    const writer = new BundleWriter({ tenant: "t" });
    writer.add({ head: 0, own: "", index: 3, number: 0, parts: [] });
    const { common, frames } = readBundle(writer.finish());
    expect(frames[0]).toMatchObject({ index: 3, own: undefined });
    expect(frames[0]?.head).toBe(common);
  });
});
