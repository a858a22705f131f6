import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RegionUse } from "../../../gateway/shared-memory/region-use.ts";
import { SharedMemoryRegions } from "../../../gateway/shared-memory/regions.ts";
import type { InferenceResponse } from "../../../protocol/inference.ts";
import { noParameters } from "../../../protocol/parameters.ts";
import { placedBytes } from "../../../protocol/shared-memory.ts";
import { MemoryObject } from "../../helpers/memory-object.ts";

let memory: MemoryObject;
let regions: SharedMemoryRegions;

beforeEach(() => {
  memory = new MemoryObject(16);
  memory.write(Buffer.from("0123456789abcdef"));
  regions = new SharedMemoryRegions(true);
  regions.register({ name: "r", key: memory.key, offset: 4, byteSize: 8 });
});
afterEach(() => memory.remove());

function open(): RegionUse {
  const use = regions.open();
  if (!use) throw new Error("no region was registered");
  return use;
}

function slice(offset: number, byteSize: number, region = "r") {
  return { region, offset, byteSize };
}

function response(...outputs: readonly [name: string, text: string][]): InferenceResponse {
  return {
    modelName: "m",
    modelVersion: "1",
    id: "",
    parameters: noParameters,
    outputs: outputs.map(([name, text]) => ({
      name,
      datatype: "UINT8",
      shape: [text.length],
      bytes: Buffer.from(text),
    })),
  };
}

describe("RegionUse", () => {
  it("is not made while there is no region", () => {
    regions.unregister("");
    expect(regions.open()).toBeUndefined();
  });

  it("reads a slice of a region once, whatever the client writes there later", () => {
    const bytes = open().input(slice(2, 4));
    memory.write(Buffer.alloc(16));
    expect(Buffer.from(bytes).toString()).toBe("6789");
  });

  it.each([
    [8, 1, "Invalid offset for shared memory region: 'r'"],
    [2 ** 64, 1, "Invalid offset for shared memory region: 'r'"],
    [0, 9, "Invalid offset + byte size for shared memory region: 'r'"],
    [7, 2, "Invalid offset + byte size for shared memory region: 'r'"],
    [0, 0, "Invalid offset + byte size for shared memory region: 'r'"],
    [1, 2 ** 64, "Invalid offset + byte size for shared memory region: 'r'"],
  ])("refuses a slice at %d of %d bytes for inputs and outputs", (offset, size, text) => {
    expect(() => open().input(slice(offset, size))).toThrow(text);
    expect(() => open().output("O", slice(offset, size))).toThrow(text);
  });

  it("does not know regions that nobody registered", () => {
    const text = "Unable to find shared memory region: 'other'";
    expect(() => open().input(slice(0, 1, "other"))).toThrow(text);
    expect(() => open().output("O", slice(0, 1, "other"))).toThrow(text);
  });

  it("writes the outputs that have a place, and leaves the others in the response", () => {
    const use = open();
    use.output("A", slice(1, 4));
    expect(use.hasOutputs).toBe(true);
    const left = use.place(response(["A", "xyz"], ["B", "uvw"]));
    expect(memory.read(16).toString()).toBe("01234xyz89abcdef");
    expect(left.outputs[0]).toMatchObject({ name: "A", shape: [3] });
    expect(left.outputs[0]?.bytes).toBe(placedBytes);
    expect(Buffer.from(left.outputs[1]?.bytes ?? []).toString()).toBe("uvw");
  });

  it("refuses an output that is larger than its place", () => {
    const use = open();
    use.output("A", slice(0, 2));
    expect(() => use.place(response(["A", "xyz"]))).toThrow(
      "shared memory size specified with the request for output 'A' (2 bytes) should be at least 3 bytes to hold the results",
    );
    expect(memory.read(16).toString()).toBe("0123456789abcdef");
  });

  it("answers with an error when the client has made its memory smaller, and does not make it larger", () => {
    const use = open();
    use.output("A", slice(0, 8));
    memory.resize(6);
    const text = "Invalid offset + byte size for shared memory region: 'r'";
    expect(() => use.input(slice(0, 8))).toThrow(text);
    expect(() => use.place(response(["A", "12345678"]))).toThrow(text);
    expect(memory.read(16).toString()).toBe("012345");
  });

  it("keeps a region that is unregistered until every request that uses it is over", () => {
    const [first, second] = [open(), open()];
    first.input(slice(0, 1));
    regions.unregister("");
    second.output("A", slice(0, 3));
    first.close();
    expect(regions.status("")).toHaveLength(1);
    second.place(response(["A", "xyz"]));
    expect(memory.read(7, 0).toString()).toBe("0123xyz");
    second.close();
    expect(regions.status("")).toEqual([]);
  });

  it("keeps a region that nobody unregistered", () => {
    const use = open();
    use.input(slice(0, 1));
    use.close();
    expect(regions.status("r")).toHaveLength(1);
  });

  it("takes no more bytes for one request than the largest message may have", () => {
    const large = new MemoryObject(2 ** 31);
    try {
      regions.register({ name: "large", key: large.key, offset: 0, byteSize: 2 ** 31 });
      expect(() => open().input(slice(0, 2 ** 31, "large"))).toThrow("expected at most 2147483647");
      const use = open();
      use.input(slice(0, 1));
      expect(() => use.input(slice(0, 2 ** 31 - 1, "large"))).toThrow("given 2147483648 bytes");
    } finally {
      large.remove();
    }
  });
});
