import { describe, expect, it } from "vitest";
import { checkJsonBounds } from "../../protocol/json-bounds.ts";

const listOf = (part: string, times: number): string => `[${`${part},`.repeat(times)}0]`;

describe("checkJsonBounds", () => {
  it("refuses millions of arrays, with what to do instead", () => {
    expect(() => checkJsonBounds(listOf("[]", 4_000_000))).toThrow(
      "the request's JSON has too many parts, expected at most 4000000 arrays; give large tensors flat or as binary data",
    );
    expect(() => checkJsonBounds(listOf("[]", 3_999_999))).not.toThrow();
  });

  it.each(["{}", '{"":0}'])("refuses very many of %s", (part) => {
    expect(() => checkJsonBounds(listOf(part, 100_001))).toThrow(
      "the request's JSON has too many parts, expected at most 100000 objects and members",
    );
    expect(() => checkJsonBounds(listOf(part, 50_000))).not.toThrow();
  });

  it("counts what stands in strings for nothing", () => {
    expect(() => checkJsonBounds(listOf('":\\"{[:"', 200_000))).not.toThrow();
  });
});
