import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StreamTable } from "../../../gateway/http2/stream-table.ts";

describe("StreamTable", () => {
  it("holds what a map holds, whatever comes and goes", () => {
    const step = fc.record({ id: fc.nat(40).map((n) => 2 * n + 1), adds: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const table = new StreamTable<{ readonly id: number }>();
        const map = new Map<number, { readonly id: number }>();
        for (const { id, adds } of steps) {
          if (!adds) {
            table.delete(id);
            map.delete(id);
          } else if (!map.has(id)) {
            const stream = { id };
            table.add(stream);
            map.set(id, stream);
          }
          expect(table.size).toBe(map.size);
          for (const [known, stream] of map) expect(table.get(known)).toBe(stream);
          expect(table.get(999)).toBeUndefined();
        }
        expect(new Set(table.all())).toEqual(new Set(map.values()));
      }),
    );
  });

  it("does not grow while a million streams come and go beside one that stays", () => {
    const table = new StreamTable<{ readonly id: number }>();
    table.add({ id: 1 });
    for (let id = 3; id < 2_000_003; id += 2) {
      table.add({ id });
      table.delete(id);
    }
    expect(table.all()).toEqual([{ id: 1 }]);
  });
});
