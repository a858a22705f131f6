import { describe, expect, it } from "vitest";
import { readPools } from "../../cli/pools.ts";
import { readSettings } from "../../cli/settings.ts";

async function read(...args: readonly string[]): ReturnType<typeof readPools> {
  return readPools(readSettings(args, {}).settings);
}

describe("readPools", () => {
  it("gives a deployment without a file one pool for all models", async () => {
    const { pools } = await read("--pool-min-workers=3", "--pool-max-workers=3");
    expect(pools).toMatchObject([{ name: "default", minWorkers: 3, maxWorkers: 3 }]);
  });

  it("refuses a default pool that may not have as many pool workers as it must", async () => {
    await expect(read("--pool-min-workers=3")).rejects.toThrow(
      "--pool-min-workers: given 3, expected --pool-max-workers, which is 1, or less",
    );
  });
});
