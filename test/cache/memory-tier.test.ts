import { describe, expect, it } from "vitest";
import { type CachedResponse, ownCopy } from "../../cache/cached-response.ts";
import { MemoryTier } from "../../cache/memory-tier.ts";
import { eventually } from "../helpers/eventually.ts";
import { responseOf } from "./responses.ts";

describe("MemoryTier", () => {
  it("forgets the answer that nobody has asked for longest when it is full", () => {
    const tier = new MemoryTier({ maxBytes: 12_000 });
    for (const key of ["a", "b", "c"]) tier.set(key, responseOf("m", 2000));
    expect(tier.get("a")).toBeDefined();
    tier.set("d", responseOf("m", 2000));
    expect(["a", "b", "c", "d"].filter((key) => tier.get(key))).toEqual(["a", "c", "d"]);
    expect(tier.observe()).toMatchObject({ entries: 3, evictions: 1, maxBytes: 12_000 });
  });

  it("counts an answer with what it takes beside its tensors", () => {
    const tier = new MemoryTier({ maxBytes: 100_000 });
    for (let i = 0; i < 1000; i++) tier.set(String(i), responseOf("m", 0));
    const { entries, bytes } = tier.observe();
    expect(entries).toBeLessThan(200);
    expect(bytes).toBeGreaterThan(50_000);
    expect(bytes).toBeLessThanOrEqual(100_000);
  });

  it("keeps no answer that is larger than itself, and forgets none for it", () => {
    const tier = new MemoryTier({ maxBytes: 10_000 });
    tier.set("small", responseOf("m", 100));
    tier.set("large", responseOf("m", 20_000));
    expect(tier.get("large")).toBeUndefined();
    expect(tier.get("small")).toBeDefined();
  });

  it("forgets an answer when its time is over", async () => {
    const tier = new MemoryTier({ maxBytes: 10_000, ttlMilliseconds: 500 });
    tier.set("a", responseOf("m", 10));
    expect(tier.get("a")).toBeDefined();
    await eventually(() => expect(tier.get("a")).toBeUndefined());
  });

  it("keeps an answer no longer than it is good for", async () => {
    const tier = new MemoryTier({ maxBytes: 10_000 });
    tier.set("short", responseOf("m", 10), 20);
    tier.set("long", responseOf("m", 10), 60_000);
    await eventually(() => expect(tier.get("short")).toBeUndefined());
    expect(tier.get("long")).toBeDefined();
  });

  it("forgets one model's answers, or all", () => {
    const tier = new MemoryTier({ maxBytes: 100_000 });
    tier.set("a", responseOf("m", 10));
    tier.set("b", responseOf("other", 10));
    tier.flush("m");
    expect([tier.get("a"), tier.get("b")?.modelName]).toEqual([undefined, "other"]);
    tier.clear();
    expect(tier.observe()).toMatchObject({ entries: 0, bytes: 0 });
  });
});

describe("ownCopy", () => {
  it("holds none of the memory that the answer's tensors are views on", () => {
    const batch = new Uint8Array(1_000_000).fill(7);
    const view = batch.subarray(10, 14);
    const response: CachedResponse = {
      ...responseOf("m", 0),
      outputs: [{ name: "OUT", datatype: "UINT8", shape: [4], bytes: view }],
    };
    const own = ownCopy(response);
    expect(own).toEqual({
      ...response,
      outputs: [{ ...response.outputs[0], bytes: Buffer.from(view) }],
    });
    expect(own.outputs[0]?.bytes.buffer.byteLength).toBe(4);
  });
});
