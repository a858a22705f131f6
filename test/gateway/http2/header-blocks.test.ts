import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HeaderBlocks, maxHeaderBytes } from "../../../gateway/http2/header-blocks.ts";
import { HpackDecoder } from "../../../gateway/http2/hpack-decoder.ts";
import { requestHead } from "../../../gateway/http2/request-head.ts";

/** What is found in the table at its first two places, what is put there, and what makes it smaller. */
const pieces = ["be", "bf", "4001610162", "4001610163", "4001640165", "3f21", "3fe11f"];

describe("HeaderBlocks", () => {
  it("remembers no head that would mean something else by now", () => {
    const block = fc.array(fc.constantFrom(...pieces), { maxLength: 2 });
    fc.assert(
      fc.property(fc.array(block, { maxLength: 30 }), (blocks) => {
        const remembering = new HeaderBlocks();
        const reading = new HpackDecoder(maxHeaderBytes);
        for (const [i, said] of blocks.entries()) {
          const sizes = said.filter((piece) => piece.startsWith("3f"));
          const others = said.filter((piece) => !piece.startsWith("3f"));
          const bytes = Buffer.from([...sizes, "838684", ...others].join(""), "hex");
          const head = attempt(() =>
            remembering.head({ stream: 2 * i + 1, endsStream: true, bytes }),
          );
          const expected = attempt(() => requestHead(reading.decode(bytes) ?? []));
          expect(head).toEqual(expected);
          if (expected instanceof Error) return;
        }
      }),
      { numRuns: 3000 },
    );
  });
});

function attempt(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    return error;
  }
}
