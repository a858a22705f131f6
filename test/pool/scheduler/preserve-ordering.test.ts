import v8 from "node:v8";
import vm from "node:vm";
import { describe, expect, it } from "vitest";
import { preserveOrdering } from "../../../pool/scheduler/preserve-ordering.ts";
import { HandHeldInstances } from "../../helpers/hand-held-instances.ts";

describe("preserveOrdering", () => {
  it("keeps nothing of the runs that have answered", async () => {
    v8.setFlagsFromString("--expose-gc");
    const collectGarbage: () => void = vm.runInNewContext("gc");
    const [instance] = new HandHeldInstances().instances;
    if (!instance) throw new Error("one instance was asked for");
    const run = preserveOrdering(() => Promise.resolve());
    const heapAfter = async (runs: number): Promise<number> => {
      for (let i = 0; i < runs; i++) await run(instance, []);
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    const before = await heapAfter(1000);
    expect((await heapAfter(100_000)) - before).toBeLessThan(4 * 1024 * 1024);
  });
});
