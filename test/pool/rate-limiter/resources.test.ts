import { describe, expect, it } from "vitest";
import { type ResourceNeed, Resources } from "../../../pool/rate-limiter/resources.ts";

function onDevice(name: string, count: number, device = 0): ResourceNeed {
  return { name, count, device };
}

function global(name: string, count: number): ResourceNeed {
  return { name, count, device: undefined };
}

describe("Resources", () => {
  it("has as much of each as the neediest instance takes, when nothing says how much there is", () => {
    const resources = new Resources([]);
    const large = [onDevice("R", 5)];
    resources.add([[onDevice("R", 2)], [onDevice("R", 3, 1)], [global("G", 4)]]);
    resources.add([large]);
    expect([...resources.free()]).toEqual([
      ["0 R", 5],
      ["1 R", 3],
      ["global G", 4],
    ]);
    resources.remove([large]);
    expect(resources.free().get("0 R")).toBe(2);
  });

  it("has what the limits say: on one device, on each, and of what is global the most", () => {
    const resources = new Resources([
      { name: "R", count: 4 },
      { name: "R", count: 6, device: 1 },
      { name: "G", count: 2, device: 3 },
      { name: "G", count: 9, device: 3 },
    ]);
    resources.add([[onDevice("R", 1, 0), onDevice("R", 1, 1), global("R2", 0), global("G", 1)]]);
    expect([...resources.free()]).toEqual([
      ["0 R", 4],
      ["1 R", 6],
      ["global R2", 0],
      ["global G", 2],
    ]);
  });

  it("refuses who could never run, and is as it was before", () => {
    const resources = new Resources([{ name: "R1", count: 4 }]);
    resources.add([[onDevice("R1", 4)]]);
    expect(() => resources.add([[onDevice("R1", 1)], [onDevice("R1", 5)]])).toThrow(
      'Resource count for "R1" is limited to 4 which will prevent scheduling of one or more model instances, ' +
        "the minimum required count is 5",
    );
    expect(() => resources.add([[global("other", 1)]])).toThrow('"other" is limited to 0');
    expect([...resources.free()]).toEqual([["0 R1", 4]]);
  });

  it("refuses a name that is global and not", () => {
    const resources = new Resources([]);
    resources.add([[onDevice("R1", 4)]]);
    expect(() => resources.add([[global("R1", 4)]])).toThrow(
      'Resource "R1" is present as both global and device-specific resource in the model configuration.',
    );
  });

  it("counts what is taken until it is given back, even by who is gone", () => {
    const resources = new Resources([]);
    const needs = [onDevice("R", 2)];
    resources.add([needs, [onDevice("R", 1)]]);
    resources.take(needs);
    expect(resources.free().get("0 R")).toBe(0);
    resources.remove([needs]);
    expect(resources.free().get("0 R")).toBe(-1);
    resources.giveBack(needs);
    expect(resources.free().get("0 R")).toBe(1);
  });
});
