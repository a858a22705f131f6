import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HpackDecoder } from "../../../gateway/http2/hpack-decoder.ts";
import { encodeHeaders } from "../../../gateway/http2/hpack-encoder.ts";
import { decodeHuffman } from "../../../gateway/http2/huffman.ts";
import { ConnectionError } from "../../../gateway/http2/wire.ts";

const maxListBytes = 65_536;

/** What blocks of one connection say, in their order. */
function decoded(...blocks: readonly string[]): readonly string[][] {
  const decoder = new HpackDecoder(maxListBytes);
  return blocks.map((block) => {
    const fields = decoder.decode(Buffer.from(block.replaceAll(" ", ""), "hex"));
    return (fields ?? []).map(({ name, value }) => `${name}: ${value}`);
  });
}

function readOrRefused(bytes: Uint8Array): unknown {
  try {
    return new HpackDecoder(maxListBytes).decode(Buffer.from(bytes));
  } catch (error) {
    return error;
  }
}

const common = [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];

describe("HpackDecoder", () => {
  it.each([
    [
      "a literal with indexing",
      "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
      "custom-key: custom-header",
    ],
    ["a literal without indexing", "040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path"],
    ["a literal never indexed", "1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret"],
    ["an indexed field", "82", ":method: GET"],
  ])("reads %s as in RFC 7541, appendix C.2", (_name, block, field) => {
    expect(decoded(block)).toEqual([[field]]);
  });

  it.each([
    [
      "without Huffman codes, C.3",
      "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
      "8286 84be 5808 6e6f 2d63 6163 6865",
      "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ],
    [
      "with Huffman codes, C.4",
      "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
      "8286 84be 5886 a8eb 1064 9cbf",
      "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ],
  ])("reads requests that build on each other %s", (_name, ...blocks) => {
    expect(decoded(...blocks)).toEqual([
      common,
      [...common, "cache-control: no-cache"],
      [
        ":method: GET",
        ":scheme: https",
        ":path: /index.html",
        ":authority: www.example.com",
        "custom-key: custom-value",
      ],
    ]);
  });

  it("forgets the oldest fields when the table is full", () => {
    // A table of 64 bytes holds one of these fields, and its index is 62.
    const table = "3f21";
    expect(decoded(`${table} 4001 6101 62`, "4001 6301 64", "be")).toEqual([
      ["a: b"],
      ["c: d"],
      ["c: d"],
    ]);
    expect(() => decoded(`${table} 4001 6101 62`, "4001 6301 64", "bf")).toThrow(
      "an index of nothing",
    );
  });

  it("empties the table for a field that is larger than it", () => {
    const large = `407f 8120 ${"61".repeat(0x7f + 4097)} 00`;
    expect(() => decoded("4001 6101 62", large, "be")).toThrow("an index of nothing");
  });

  it.each([
    ["an index of nothing", "80"],
    ["an index of nothing", "be"],
    ["an end amid a field", "40"],
    ["an end amid a field", "ff"],
    ["a number that is too large", "ff ffffffffff"],
    ["a text longer than the block", "4005 6162"],
    ["a text in no known code", "4081 00 00"],
    ["a text in no known code", "4084 ffffffff 00"],
    ["a table larger than allowed", "3fe2 1f"],
    ["a change of the table's size behind a field", "82 20"],
  ])("refuses %s: %s", (text, block) => {
    expect(() => decoded(block)).toThrow(`header block: ${text}`);
  });

  it("counts what a list holds, however short the block that says it, and reads on behind it", () => {
    const decoder = new HpackDecoder(1000);
    const value = "61".repeat(100);
    expect(decoder.decode(Buffer.from(`40016164${value}`, "hex"))).toHaveLength(1);
    expect(decoder.decode(Buffer.alloc(7, 0xbe))).toHaveLength(7);
    expect(decoder.decode(Buffer.alloc(20_000, 0xbe))).toBeUndefined();
    expect(decoder.decode(Buffer.alloc(1, 0xbe))).toHaveLength(1);
  });

  it("never does anything but read or refuse, whatever it is given", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        const result = readOrRefused(bytes);
        expect(Array.isArray(result) || result instanceof ConnectionError).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("encodeHeaders", () => {
  it("says what the decoder reads", () => {
    const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/u);
    const value = fc.string({
      unit: fc.integer({ min: 32, max: 255 }).map((code) => String.fromCharCode(code)),
      maxLength: 300,
    });
    fc.assert(
      fc.property(fc.dictionary(name, value), (headers) => {
        const fields = new HpackDecoder(2 ** 20).decode(
          encodeHeaders({ ":status": 200, ...headers }),
        );
        const found = fields?.map((field) => [field.name, field.value]);
        expect(found).toEqual([[":status", "200"], ...Object.entries(headers)]);
      }),
    );
  });

  it("says a header with several values as often, and one without any not at all", () => {
    const fields = new HpackDecoder(maxListBytes).decode(
      encodeHeaders({ a: ["1", "2"], b: undefined }),
    );
    expect(fields).toEqual([
      { name: "a", value: "1" },
      { name: "a", value: "2" },
    ]);
  });
});

describe("decodeHuffman", () => {
  it("refuses a filling that is not the beginning of the end's code, or is too long", () => {
    // "a" is 00011.
    expect(decodeHuffman(Buffer.of(0b0001_1111))).toBe("a");
    expect(decodeHuffman(Buffer.of(0b0001_1110))).toBeUndefined();
    expect(decodeHuffman(Buffer.of(0b0001_1111, 0xff))).toBeUndefined();
  });
});
