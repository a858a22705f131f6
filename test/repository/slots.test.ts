import { describe, expect, it } from "vitest";
import { Slots } from "../../repository/slots.ts";

describe("Slots", () => {
  it("runs so many at a time, in the order they came, and goes on after a failure", async () => {
    const slots = new Slots(2);
    const started: number[] = [];
    const gates = [0, 1, 2, 3].map(() => Promise.withResolvers<void>());
    const runs = gates.map((gate, i) =>
      slots.run(async () => {
        started.push(i);
        await gate.promise;
      }),
    );
    expect(started).toEqual([0, 1]);
    gates[0]?.reject(new Error("broken"));
    await expect(runs[0]).rejects.toThrow("broken");
    expect(started).toEqual([0, 1, 2]);
    for (const gate of gates) gate.resolve();
    await Promise.all(runs.slice(1));
    expect(started).toEqual([0, 1, 2, 3]);
  });
});
