import { describe, expect, it } from "vitest";
import { oneAtATime } from "../../autoscaler/one-at-a-time.ts";
import { turn } from "../helpers/fake-clock.ts";

/** A task whose runs end when they are told to. */
function heldTask() {
  const runs: PromiseWithResolvers<void>[] = [];
  const ask = oneAtATime(() => {
    const run = Promise.withResolvers<void>();
    runs.push(run);
    return run.promise;
  });
  return { runs, ask };
}

describe("oneAtATime", () => {
  it("begins at once when nothing runs", () => {
    const { runs, ask } = heldTask();
    void ask();
    expect(runs).toHaveLength(1);
  });

  it("runs once more for all who asked meanwhile, and not while the first runs", async () => {
    const { runs, ask } = heldTask();
    const first = ask();
    const later = Promise.all([ask(), ask(), ask()]);
    await turn();
    expect(runs).toHaveLength(1);
    runs[0]?.resolve();
    await first;
    await turn();
    expect(runs).toHaveLength(2);
    runs[1]?.resolve();
    await later;
    await turn();
    expect(runs).toHaveLength(2);
  });

  it("tells who asked only when a run has ended that began after the asking", async () => {
    const { runs, ask } = heldTask();
    void ask();
    let told = false;
    const asked = ask().then(() => (told = true));
    runs[0]?.resolve();
    await turn();
    expect(told).toBe(false);
    runs[1]?.resolve();
    await asked;
  });

  it("can be asked again when all is done", async () => {
    const { runs, ask } = heldTask();
    for (let i = 0; i < 3; i++) {
      const asked = ask();
      runs[i]?.resolve();
      await asked;
    }
    expect(runs).toHaveLength(3);
  });
});
