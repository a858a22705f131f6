import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { together } from "../../repository/together.ts";

describe("together", () => {
  it("gives all results in their order", async () => {
    const tasks = [30, 1].map((pause) => async () => {
      await new Promise((resolve) => setTimeout(resolve, pause));
      return pause;
    });
    expect(await together(new AbortController().signal, tasks)).toEqual([30, 1]);
  });

  it("stops the others when one fails, and waits until they have stopped", async () => {
    let stopped = false;
    const failing = together(new AbortController().signal, [
      async (signal: AbortSignal) => {
        await once(signal, "abort");
        await new Promise((resolve) => setImmediate(resolve));
        stopped = true;
        throw new Error("stopped");
      },
      () => Promise.reject(new Error("the first reason")),
    ]);
    await expect(failing).rejects.toThrow("the first reason");
    expect(stopped).toBe(true);
  });

  it("begins nothing for those who have gone", async () => {
    let begun = false;
    const task = async (): Promise<void> => void (begun = true);
    const gone = AbortSignal.abort(new Error("gone"));
    await expect(together(gone, [task])).rejects.toThrow("gone");
    expect(begun).toBe(false);
  });
});
