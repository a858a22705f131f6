import { describe, expect, it } from "vitest";
import { LoadSlots } from "../../../serving/lifecycle/load-slots.ts";

describe("LoadSlots", () => {
  it("runs so many loads at a time, in the order they came, whether they fail or not", async () => {
    const slots = new LoadSlots(2);
    const order: number[] = [];
    let running = 0;
    let most = 0;
    const load = async (i: number): Promise<void> => {
      order.push(i);
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, i % 3));
      running--;
      if (i % 2 === 0) throw new Error(`load ${i}`);
    };
    const loads = [0, 1, 2, 3, 4, 5].map((i) => slots.run(() => load(i)));
    const results = await Promise.allSettled(loads);
    expect(results.map(({ status }) => status === "fulfilled")).toEqual([
      false,
      true,
      false,
      true,
      false,
      true,
    ]);
    expect(order).toEqual([0, 1, 2, 3, 4, 5]);
    expect(most).toBe(2);

    await Promise.all([slots.run(() => load(1)), slots.run(() => load(3))]);
    expect(running).toBe(0);
  });
});
