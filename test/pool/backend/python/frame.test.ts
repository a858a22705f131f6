import { array, assert, nat, property, string, tuple, uint8Array } from "fast-check";
import { describe, expect, it } from "vitest";
import { type Frame, FrameReader, frameParts } from "../../../../pool/backend/python/frame.ts";

function pieces(bytes: Buffer, lengths: readonly number[]): Buffer[] {
  const cut: Buffer[] = [];
  let at = 0;
  for (const length of lengths) {
    cut.push(bytes.subarray(at, at + length));
    at += length;
  }
  return [...cut, bytes.subarray(at)].filter(({ byteLength }) => byteLength > 0);
}

describe("FrameReader", () => {
  it("gives the frames that were written, however their bytes come", () => {
    const payload = uint8Array({ maxLength: 50 });
    const frame = tuple(string(), array(payload, { maxLength: 3 }));
    assert(
      property(array(frame), array(nat({ max: 60 })), (frames, cuts) => {
        const bytes = Buffer.concat(
          frames.flatMap(([text, payloads]) => frameParts(JSON.stringify([text]), payloads)),
        );
        const read: Frame[] = [];
        const reader = new FrameReader((one) => read.push(one));
        for (const chunk of pieces(bytes, cuts)) reader.push(chunk);
        expect(read.map(({ head }) => head)).toEqual(frames.map(([text]) => [text]));
        for (const [i, { payload: found }] of read.entries()) {
          const expected = (frames[i]?.[1] ?? []).map((part) =>
            Buffer.concat([part], Math.ceil(part.length / 8) * 8),
          );
          expect(Buffer.from(found)).toEqual(Buffer.concat(expected));
        }
      }),
    );
  });

  it("puts a frame together that is longer than what is joined at once", () => {
    const payload = Buffer.alloc(1_000_003, 7);
    const bytes = Buffer.concat([...frameParts("[1]", [payload]), ...frameParts("[2]", [])]);
    const read: Frame[] = [];
    const reader = new FrameReader((one) => read.push(one));
    for (let at = 0; at < bytes.byteLength; at += 65_536)
      reader.push(bytes.subarray(at, at + 65_536));
    expect(read.map(({ head }) => head)).toEqual([[1], [2]]);
    expect(read[0]?.payload.subarray(0, payload.byteLength)).toEqual(payload);
  });
});
