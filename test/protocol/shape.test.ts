import { describe, expect, it } from "vitest";
import { sameItemShape } from "../../protocol/shape.ts";

describe("sameItemShape", () => {
  it.each([
    [[2, 3], [5, 3], true],
    [[2], [7], true],
    [[2, 3], [2, 4], false],
    [[2, 3], [2, 3, 1], false],
    [[], [], false],
  ])("says of %j and %j: %s", (left, right, expected) => {
    expect(sameItemShape(left, right)).toBe(expected);
  });
});
