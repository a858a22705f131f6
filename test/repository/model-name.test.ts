import { describe, expect, it } from "vitest";
import { checkModelName, isPathSegment } from "../../repository/model-name.ts";

describe("isPathSegment", () => {
  it.each(["resnet50", "a.b-c_d", "模型", "with space", "x".repeat(255)])("takes %j", (name) => {
    expect(isPathSegment(name)).toBe(true);
  });

  it.each([
    "",
    ".",
    "..",
    ".hidden",
    "a/b",
    "a\\b",
    "a\0b",
    "a\nb",
    "x".repeat(256),
    "é".repeat(128),
  ])("refuses %j", (name) => {
    expect(isPathSegment(name)).toBe(false);
  });
});

describe("checkModelName", () => {
  it("names what it was given and what it expects", () => {
    expect(() => checkModelName("../up")).toThrow(
      `model name: given "../up", expected 1 to 255 bytes without '/', '\\', control characters or a leading '.'`,
    );
  });

  it("does not repeat a name of any length", () => {
    expect(() => checkModelName("/".repeat(100_000))).toThrow(/^.{0,250}$/);
  });
});
