import { assert, property, string, constantFrom } from "fast-check";
import { describe, expect, it } from "vitest";
import { coversPattern, matchesPattern, modelPattern } from "../../protocol/model-pattern.ts";

/** Few characters, so that names often match; some of them mean something in a regular expression. */
const texts = string({ unit: constantFrom("a", "b", ".", "*"), maxLength: 8 });
const names = string({ unit: constantFrom("a", "b", "."), maxLength: 12 });

/** The same pattern as a regular expression: another way to the same answer. */
function expression(text: string): RegExp {
  return new RegExp(`^${text.replaceAll(".", String.raw`\.`).replaceAll("*", ".*")}$`, "u");
}

describe("matchesPattern", () => {
  it.each([
    ["bert", "bert"],
    ["*", "anything"],
    ["resnet*", "resnet"],
    ["resnet*", "resnet50"],
    ["*-v*-fp16", "bert-v2-v3-fp16"],
    ["[a-z]+", "[a-z]+"],
  ])("lets %s take %s", (text, name) => {
    expect(matchesPattern(modelPattern(text), name)).toBe(true);
  });

  it.each([
    ["bert", "Bert"],
    ["bert", "bert2"],
    ["b.rt", "bert"],
    ["b?rt", "bert"],
    ["ab*ba", "aba"],
    ["*a*a*", "a"],
  ])("keeps %s from taking %s", (text, name) => {
    expect(matchesPattern(modelPattern(text), name)).toBe(false);
  });

  it("agrees with a regular expression about any pattern and name", () => {
    assert(
      property(texts, names, (text, name) => {
        expect(matchesPattern(modelPattern(text), name)).toBe(expression(text).test(name));
      }),
      { numRuns: 2000 },
    );
  });
});

describe("coversPattern", () => {
  it.each([
    ["*", "bert", true],
    ["**", "*", true],
    ["bert*", "bert-*-v2", true],
    ["bert", "bert*", false],
    ["*a", "*", false],
  ])("of %s over %s is %s", (wide, narrow, covered) => {
    expect(coversPattern(modelPattern(wide), modelPattern(narrow))).toBe(covered);
  });

  it("holds only where every name of the one is a name of the other", () => {
    assert(
      property(texts, texts, names, (wide, narrow, filling) => {
        if (!coversPattern(modelPattern(wide), modelPattern(narrow))) return;
        const name = narrow.replaceAll("*", () => filling);
        expect(matchesPattern(modelPattern(wide), name)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});
