import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ExactJsonReader } from "../../protocol/exact-json-reader.ts";
import { decodeJson, demandExactNumbers, readJson } from "../../protocol/json-text.ts";

const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
const listTo = (last: string): string => `[${"1,".repeat(2 ** 21)}${last}]`;
const root = (text: string): unknown => readJson(text, (document) => document.root);

/** Reads as a caller does to whom every number matters. */
const exactly = (text: string): unknown =>
  readJson(text, (document) => (document.exact ? document.root : demandExactNumbers()));

describe("readJson", () => {
  it.each([
    ["", "The document is empty. at 0"],
    ["{", "Missing a name for object member. at 1"],
    ['{"inputs"', "Missing a colon after a name of object member. at 9"],
    ['{"inputs":}', "Invalid value. at 10"],
    ['{"a":1,}', "Missing a name for object member. at 7"],
    ['{"a":1 "b":2}', "Missing a comma or '}' after an object member. at 7"],
    ["{a:1}", "Missing a name for object member. at 1"],
    ['{"a":tru}', "Invalid value. at 8"],
    ['{"a":01}', "Missing a comma or '}' after an object member. at 6"],
    ['{"a":1.}', "Miss fraction part in number. at 7"],
    ['{"a":-}', "Invalid value. at 6"],
    ['{"a":1e}', "Miss exponent in number. at 7"],
    ['{"a":"x', "Missing a closing quotation mark in string. at 7"],
    ['{"a":"\\q"}', "Invalid escape character in string. at 6"],
    ['{"a":"\n"}', "Invalid escape character in string. at 6"],
    ['{"a":"\\u12"}', "Incorrect hex digit after \\u escape in string. at 6"],
    ['{"a":[1 2]}', "Missing a comma or ']' after an array element. at 8"],
    ["{} x", "The document root must not be followed by other values. at 3"],
  ])("says what is wrong with %s as the reference does", (text, complaint) => {
    expect(() => root(text)).toThrow(`failed to parse the request JSON buffer: ${complaint}`);
  });

  it("accepts NaN and Infinity, as the reference does", () => {
    expect(root("[NaN,Infinity,-Infinity,Inf,-Inf,1]")).toEqual([
      NaN,
      Infinity,
      -Infinity,
      Infinity,
      -Infinity,
      1,
    ]);
  });

  it("reads integers of 64 bits exactly where they are asked for", () => {
    expect(exactly("[18446744073709551615,-9223372036854775808,9007199254740993,7]")).toEqual([
      18446744073709551615n,
      -9223372036854775808n,
      9007199254740993n,
      7,
    ]);
  });

  it("reads integers beyond 64 bits as the doubles they are near to", () => {
    expect(exactly("[18446744073709551616,1e30,1000000000000000000000000000000]")).toEqual([
      2 ** 64,
      1e30,
      1e30,
    ]);
  });

  it("refuses a number too big for a double and half a surrogate pair when it reads exactly", () => {
    expect(() => exactly('{"a":1e999}')).toThrow("Number too big to be stored in double. at 5");
    expect(() => exactly('{"a":"\\ud800"}')).toThrow(
      "The surrogate pair in string is invalid. at 6",
    );
    expect(exactly('"\\ud83d\\ude00"')).toBe("😀");
  });

  it("refuses JSON that nests deeper than 100 and reads what does not", () => {
    expect(() => root(nested(101))).toThrow(
      "JSON nesting depth exceeds maximum allowed limit (100)",
    );
    expect(() => root(`{"a":${nested(100)}}`)).toThrow("JSON nesting depth");
    expect(root(nested(100))).toBeInstanceOf(Array);
    expect(root(`["${"[".repeat(200)}\\"]"]`)).toHaveLength(1);
    expect(root(`[${"[],".repeat(300)}[]]`)).toHaveLength(301);
  });

  it("reads long JSON, but refuses what would take the exact reader long", () => {
    expect(root(listTo("1"))).toHaveLength(2 ** 21 + 1);
    const tooLong = /expected at most 4194304 characters.*send such data as binary tensors$/u;
    expect(() => root(listTo("NaN"))).toThrow(tooLong);
    expect(() => root(listTo(""))).toThrow(tooLong);
    expect(() => exactly(listTo("9007199254740993"))).toThrow(tooLong);
    expect(root(`[${" ".repeat(2 ** 22 - 5)}NaN]`)).toEqual([NaN]);
  });

  it("does not swallow an error of its user", () => {
    expect(() =>
      readJson("{}", () => {
        throw new RangeError("mine");
      }),
    ).toThrow("mine");
  });
});

describe("ExactJsonReader", () => {
  it("reads whatever JSON.parse reads", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.nat(3), (value, indent) => {
        const text = JSON.stringify(value, undefined, indent);
        const read = new ExactJsonReader(text).read();
        expect(JSON.stringify(read, bigintsAsNumbers)).toBe(JSON.stringify(JSON.parse(text)));
      }),
    );
  });

  it("never hangs on text that is cut off or changed", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), fc.string(), (text, at, noise) => {
        const cut = text.slice(0, at % (text.length + 1)) + noise;
        expect(() => attempt(cut)).not.toThrow();
      }),
    );
  });

  it("keeps a member named __proto__ a member", () => {
    const read = new ExactJsonReader('{"__proto__":{"polluted":1}}').read();
    expect(Object.keys(Object(read))).toEqual(["__proto__"]);
    expect({}).not.toHaveProperty("polluted");
  });
});

describe("decodeJson", () => {
  it("refuses bytes that are not UTF-8 instead of replacing them", () => {
    expect(() => decodeJson(Uint8Array.of(34, 255, 34))).toThrow("Invalid encoding in string.");
    expect(decodeJson(new TextEncoder().encode('"é"'))).toBe('"é"');
  });
});

function bigintsAsNumbers(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? Number(value) : value;
}

/** Throws only what is no InferenceError. */
function attempt(text: string): void {
  try {
    new ExactJsonReader(text).read();
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "InferenceError") throw error;
  }
}
