import { afterEach, describe, expect, it } from "vitest";
import { Arena } from "../../../../pool/backend/python/arena.ts";

let arena: Arena | undefined;

function open(sizeBytes: number): Arena {
  arena = Arena.open(sizeBytes);
  if (!arena) throw new Error("this machine has no shared memory");
  return arena;
}

afterEach(() => arena?.close());

describe("Arena", () => {
  it("gives back what was stored, and uses a freed block again", () => {
    const memory = open(1 << 20);
    const first = memory.store(Buffer.alloc(100_000, 1)) ?? -1;
    const second = memory.store(Buffer.alloc(100_000, 2)) ?? -1;
    expect(memory.read(first, 100_000)).toEqual(Buffer.alloc(100_000, 1));
    expect(memory.read(second, 100_000)).toEqual(Buffer.alloc(100_000, 2));
    memory.free(first);
    expect(memory.store(Buffer.alloc(120_000, 3))).toBe(first);
    expect(memory.read(second, 100_000)).toEqual(Buffer.alloc(100_000, 2));
  });

  it("has no room for more than its size", () => {
    const memory = open(1 << 20);
    expect(memory.store(Buffer.alloc((1 << 20) + 1))).toBeUndefined();
    expect(memory.store(Buffer.alloc(1 << 20))).toBe(0);
    expect(memory.store(Buffer.alloc(1))).toBeUndefined();
  });

  it("touches no file once it is closed", () => {
    const memory = open(1 << 20);
    const offset = memory.store(Buffer.alloc(10)) ?? -1;
    memory.close();
    expect(memory.store(Buffer.alloc(10))).toBeUndefined();
    expect(() => memory.read(offset, 10)).toThrow("no such block");
  });
});
