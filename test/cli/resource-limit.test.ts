import { describe, expect, it } from "vitest";
import { resourceLimit } from "../../cli/resource-limit.ts";

describe("resourceLimit", () => {
  it.each([
    ["R1:4", { name: "R1", count: 4 }],
    ["R1:4:0", { name: "R1", count: 4, device: 0 }],
    ["GPU memory:0:3", { name: "GPU memory", count: 0, device: 3 }],
  ])("reads %s", (given, limit) => {
    expect(resourceLimit.parse(given)).toEqual(limit);
  });

  it.each(["R1", "R1:", ":4", "R1:x", "R1:-4", "R1:4:x", "R1:4:-1", "R1:4:", "R1:4:0:1", ""])(
    "reads no limit in '%s'",
    (given) => {
      expect(resourceLimit.parse(given)).toBeUndefined();
    },
  );
});
