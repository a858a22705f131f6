import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createKey, revokeKey } from "../../auth/key-changes.ts";
import { KeyRing } from "../../auth/key-ring.ts";
import { eventually } from "../helpers/eventually.ts";
import { SilentLog } from "../helpers/silent-log.ts";
import { anyPurpose } from "./key-store-cases.ts";
import { MemoryKeyStore } from "./memory-key-store.ts";

let store: MemoryKeyStore;
let log: SilentLog;
let now: number;
let rings: KeyRing[];
beforeEach(() => {
  store = new MemoryKeyStore();
  log = new SilentLog();
  now = 0;
  rings = [];
});
afterEach(() => {
  for (const ring of rings) ring.close();
});

/** One that looks only when it is asked or told to, and one that looks all the time. */
async function open(lookMilliseconds = 1e9): Promise<KeyRing> {
  const ring = await KeyRing.open({ store, log, lookMilliseconds, now: () => now });
  rings.push(ring);
  return ring;
}

async function newKey(): Promise<string> {
  return (await createKey(store, anyPurpose, 0)).key.id;
}

describe("KeyRing", () => {
  it("knows the caller of each key", async () => {
    const { key } = await createKey(
      store,
      { name: "ci", tenant: "blue", scopes: ["read"], models: ["a*"], expiresAt: 9 },
      0,
    );
    const ring = await open();
    expect(ring.size).toBe(1);
    expect(ring.find(key.id)).toMatchObject({
      expiresAt: 9,
      caller: {
        name: `key:${key.id}`,
        title: "ci",
        tenant: "blue",
        scopes: new Set(["read"]),
        models: [{ text: "a*" }],
      },
    });
    expect(ring.find("0123456789ab")).toBeUndefined();
  });

  it("looks again and again, and reads the keys only when they are others", async () => {
    const first = await newKey();
    const ring = await open(1);
    const known = ring.find(first);
    const { looks } = store;
    await eventually(() => expect(store.looks).toBeGreaterThan(looks + 3));
    expect(ring.find(first)).toBe(known);
    await revokeKey(store, first);
    await eventually(() => expect(ring.find(first)).toBeUndefined());
  });

  it("looks at once when the store tells of a change", async () => {
    const ring = await open();
    const id = await newKey();
    expect(ring.find(id)).toBeUndefined();
    store.tell();
    await eventually(() => expect(ring.find(id)).toBeDefined());
  });

  it("looks once more when it is told of a change amid a look", async () => {
    const ring = await open();
    const { promise, resolve } = Promise.withResolvers<void>();
    store.gate = promise;
    store.tell();
    const id = await newKey();
    for (let i = 0; i < 1000; i++) store.tell();
    const { looks } = store;
    resolve();
    await eventually(() => expect(ring.find(id)).toBeDefined());
    expect(store.looks).toBe(looks + 1);
  });

  it("is fresh for less than two seconds after a look began, and looks when it is asked later", async () => {
    const ring = await open();
    now = 1499;
    expect(ring.fresh).toBe(true);
    now = 1500;
    expect(ring.fresh).toBe(false);
    const id = await newKey();
    await ring.refresh();
    expect(ring.fresh).toBe(true);
    expect(ring.find(id)).toBeDefined();
    const { looks } = store;
    await ring.refresh();
    expect(store.looks).toBe(looks);
  });

  it("does not count a look that took longer than that", async () => {
    const ring = await open();
    now = 5000;
    const { promise, resolve } = Promise.withResolvers<void>();
    store.gate = promise;
    const asked = ring.refresh();
    now = 7000;
    resolve();
    await expect(asked).rejects.toThrow("API keys cannot be looked up at the moment");
  });

  it("lets nobody in once the store is away, tells of it once, and comes back", async () => {
    const ring = await open();
    store.isAway = true;
    await ring.refresh();
    now = 2000;
    for (let i = 0; i < 3; i++) {
      await expect(ring.refresh()).rejects.toMatchObject({
        code: "UNAVAILABLE",
        retryAfterSeconds: 1,
      });
    }
    expect(log.warnings).toEqual(["API keys in memory cannot be read"]);
    store.isAway = false;
    await ring.refresh();
    expect(ring.fresh).toBe(true);
  });

  it("is not opened when the keys cannot be read, and leaves nothing behind", async () => {
    store.isAway = true;
    await expect(open(1)).rejects.toThrow("the store is away");
    const { looks } = store;
    store.tell();
    expect(store.looks).toBe(looks);
  });

  it("looks no more when it is closed", async () => {
    const ring = await open(1);
    ring.close();
    const { looks } = store;
    store.tell();
    const other = new MemoryKeyStore();
    rings.push(await KeyRing.open({ store: other, log, lookMilliseconds: 1 }));
    await eventually(() => expect(other.looks).toBeGreaterThan(20));
    // The look that was under way, and none after it.
    expect(store.looks).toBeLessThanOrEqual(looks + 1);
  });
});
