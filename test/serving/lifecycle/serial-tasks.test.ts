import { describe, expect, it } from "vitest";
import { SerialTasks } from "../../../serving/lifecycle/serial-tasks.ts";

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 2));

describe("SerialTasks", () => {
  it("runs the tasks of one key one after another, past failures, and those of others beside them", async () => {
    const tasks = new SerialTasks();
    const told: string[] = [];
    const task =
      (name: string, fails = false) =>
      async (): Promise<void> => {
        told.push(`${name} starts`);
        await pause();
        told.push(`${name} ends`);
        if (fails) throw new Error(name);
      };
    await Promise.allSettled([
      tasks.run("a", task("a1", true)),
      tasks.run("a", task("a2")),
      tasks.run("b", task("b1")),
    ]);
    expect(told.filter((line) => line.startsWith("a"))).toEqual([
      "a1 starts",
      "a1 ends",
      "a2 starts",
      "a2 ends",
    ]);
    expect(told.indexOf("b1 starts")).toBeLessThan(told.indexOf("a1 ends"));
  });

  it("gives back what the task gives", async () => {
    const tasks = new SerialTasks();
    await expect(tasks.run("a", async () => 7)).resolves.toBe(7);
  });
});
