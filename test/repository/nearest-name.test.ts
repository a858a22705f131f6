import { describe, expect, it } from "vitest";
import { nearestName } from "../../repository/nearest-name.ts";

const known = ["max_batch_size", "input", "output", "dims"];

describe("nearestName", () => {
  it.each([
    ["max_batch_sise", "max_batch_size"],
    ["maxBatchSize", "max_batch_size"],
    ["MAX_BATCH_SIZE", "max_batch_size"],
    ["inputs", "input"],
    ["dim", "dims"],
    ["xyz", undefined],
    ["x".repeat(100_000), undefined],
  ])("takes %s for %s", (typed, meant) => {
    expect(nearestName(typed, known)).toBe(meant);
  });
});
