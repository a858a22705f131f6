import { expect, it } from "vitest";
import { createKey, type KeyPurpose, revokeKey, rotateKey } from "../../auth/key-changes.ts";
import type { KeyStore } from "../../auth/key-store.ts";

/** What a key is made for where the test does not mind. */
export const anyPurpose: KeyPurpose = {
  name: "ci",
  tenant: "default",
  scopes: ["infer", "read"],
  models: ["*"],
  expiresAt: undefined,
};

/** What every store of keys does. @param open gives one that is empty */
export function keyStoreCases(open: () => Promise<KeyStore>): void {
  it("keeps keys without their secrets, and gives them back", async () => {
    const store = await open();
    const { key, record } = await createKey(store, { ...anyPurpose, expiresAt: 9 }, 5);
    const other = await createKey(store, anyPurpose, 6);
    const all = await store.all();
    expect(all.toSorted((a, b) => a.createdAt - b.createdAt)).toEqual([record, other.record]);
    expect(JSON.stringify(all)).not.toContain(key.text.slice(-43));
  });

  it("tells by its version that a key was made, rotated or revoked", async () => {
    const store = await open();
    const versions = [];
    const { key } = await createKey(store, anyPurpose, 0);
    versions.push(await store.version());
    await createKey(store, anyPurpose, 0);
    versions.push(await store.version());
    await rotateKey(store, key.id, 7);
    versions.push(await store.version());
    await revokeKey(store, key.id);
    versions.push(await store.version());
    expect(new Set(versions).size).toBe(4);
    expect(await store.version()).toBe(versions[3]);
    expect(await store.all()).toHaveLength(1);
  });

  it("keeps the secret before a rotation, and no older one", async () => {
    const store = await open();
    const { key, record } = await createKey(store, anyPurpose, 0);
    const second = await rotateKey(store, key.id, 7);
    expect(second.key.text).not.toBe(key.text);
    expect(second.record.previous).toEqual({ sha256: record.sha256, expiresAt: 7 });
    const third = await rotateKey(store, key.id, 8);
    expect(third.record.previous?.sha256).toBe(second.record.sha256);
    expect(await store.all()).toEqual([third.record]);
  });

  it("refuses an id that no key has", async () => {
    const store = await open();
    await createKey(store, anyPurpose, 0);
    await expect(revokeKey(store, "0123456789ab")).rejects.toThrow("given an id that no key has");
    await expect(rotateKey(store, "", 0)).rejects.toThrow("given an id that no key has");
  });

  it("changes a key only from what it was", async () => {
    const store = await open();
    const { record } = await createKey(store, anyPurpose, 0);
    const newer = { ...record, name: "newer" };
    expect(await store.replace(undefined, newer)).toBe(false);
    expect(await store.replace(record, newer)).toBe(true);
    expect(await store.replace(record, undefined)).toBe(false);
    expect(await store.all()).toEqual([newer]);
  });

  it("loses none of many changes at once", async () => {
    const store = await open();
    await createKey(store, anyPurpose, 0);
    const made = Array.from({ length: 20 }, (_, at) => createKey(store, anyPurpose, at));
    const ids = (await Promise.all(made)).map(({ key }) => key.id);
    await Promise.all(ids.slice(10).map((id) => revokeKey(store, id)));
    const left = (await store.all()).map(({ id }) => id);
    expect(left).toHaveLength(11);
    expect(left).toEqual(expect.arrayContaining(ids.slice(0, 10)));
  });
}
