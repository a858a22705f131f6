import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bundles, readFrame, unbundle, writeFrame } from "../../queue/frame.ts";

const buffer = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array));

describe("writeFrame", () => {
  it("keeps a head and the bytes behind it", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.array(buffer), (head, parts) => {
        // JSON has no negative zero.
        const plain: unknown = JSON.parse(JSON.stringify(head));
        const frame = readFrame(writeFrame(head, parts));
        expect(frame.head).toEqual(plain);
        expect(frame.bytes).toEqual(Buffer.concat(parts));
      }),
    );
  });
});

describe("bundles", () => {
  it("keeps frames, empty ones too, and their order", () => {
    fc.assert(
      fc.property(fc.array(buffer), (frames) => {
        expect(bundles(frames).flatMap((bytes) => [...unbundle(bytes)])).toEqual(frames);
      }),
    );
  });
});
