import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { newApiKey } from "../../auth/api-key.ts";
import { type Authenticator, authenticator, type Credentials } from "../../auth/authenticator.ts";
import { createKey, revokeKey, rotateKey } from "../../auth/key-changes.ts";
import { KeyRing } from "../../auth/key-ring.ts";
import { SilentLog } from "../helpers/silent-log.ts";
import { anyPurpose } from "./key-store-cases.ts";
import { MemoryKeyStore } from "./memory-key-store.ts";

let store: MemoryKeyStore;
let keys: KeyRing;
let callers: Authenticator;
/** Of the wall, and of the ring. */
let now: number;
beforeEach(async () => {
  now = 1000;
  store = new MemoryKeyStore();
  keys = await KeyRing.open({
    store,
    log: new SilentLog(),
    lookMilliseconds: 1e9,
    now: () => now,
  });
  callers = authenticator({ keys, tokens: undefined, now: () => now });
});
afterEach(() => keys.close());

async function newKey(expiresAt?: number): Promise<string> {
  const { key } = await createKey(store, { ...anyPurpose, expiresAt }, now);
  now += 2000;
  await keys.refresh();
  return key.text;
}

function apiKey(text: string): Credentials {
  return { authorization: undefined, apiKey: text };
}

function authorization(text: string): Credentials {
  return { authorization: text, apiKey: undefined };
}

const nothing: Credentials = { authorization: undefined, apiKey: undefined };

/** Held against both ways to ask. */
async function isLetIn(given: Credentials): Promise<boolean> {
  const known = callers.known(given);
  const found = await callers.authenticate(given).catch(() => undefined);
  expect(found).toBe(known);
  return known !== undefined;
}

describe("authenticator", () => {
  it("takes a key as a bearer and as X-API-Key, which wins", async () => {
    const key = await newKey();
    expect(await isLetIn(apiKey(key))).toBe(true);
    expect(await isLetIn(authorization(`Bearer ${key}`))).toBe(true);
    expect(await isLetIn(authorization(`bEARER   ${key}`))).toBe(true);
    expect(await isLetIn({ authorization: "Basic YTpi", apiKey: key })).toBe(true);
    expect(await isLetIn({ authorization: `Bearer ${key}`, apiKey: "other" })).toBe(false);
  });

  it("takes no key in any other form", async () => {
    const key = await newKey();
    const forms = [
      key,
      `Basic ${key}`,
      `Bearer${key}`,
      `Bearer ${key}, Bearer ${key}`,
      `Bearer ${key} `,
      "Bearer ",
    ];
    for (const form of forms)
      expect([form, await isLetIn(authorization(form))]).toEqual([form, false]);
    for (const form of [`Bearer ${key}`, `${key}, ${key}`, ""])
      expect(await isLetIn(apiKey(form))).toBe(false);
  });

  it("tells apart who shows nothing, who shows something else, and whose key is not valid", async () => {
    await expect(callers.authenticate(nothing)).rejects.toMatchObject({
      code: "UNAUTHENTICATED",
      message:
        "credentials: given nothing, expected an API key as Authorization: Bearer, or the key as X-API-Key",
    });
    await expect(callers.authenticate(authorization("Basic x"))).rejects.toThrow(
      "given an Authorization that cannot be used",
    );
    await expect(callers.authenticate(authorization("Bearer e30.e30.x"))).rejects.toThrow(
      "given a token, expected an API key",
    );
    const onlyEdge = authenticator({ keys: undefined, tokens: undefined });
    await expect(onlyEdge.authenticate(nothing)).rejects.toThrow(
      "credentials: given nothing, expected a call by way of the edge",
    );
  });

  it("says the same of a key with another secret, an unknown one, one that ended, and nonsense", async () => {
    const key = await newKey();
    const expired = await newKey(now + 1);
    const revoked = await newKey();
    await revokeKey(store, revoked.slice(3, 15));
    now += 2000;
    await keys.refresh();
    const wrong = [newApiKey(key.slice(3, 15)).text, newApiKey().text, expired, revoked, "x"];
    for (const text of wrong) {
      await expect(callers.authenticate(apiKey(text))).rejects.toThrow(
        "API key: given one that is not valid",
      );
      expect(callers.known(apiKey(text))).toBeUndefined();
    }
    expect(await isLetIn(apiKey(key))).toBe(true);
  });

  it("takes both secrets after a rotation until the time for the old one is over", async () => {
    const old = await newKey();
    const { key } = await rotateKey(store, old.slice(3, 15), now + 5000);
    now += 2000;
    await keys.refresh();
    expect(await isLetIn(apiKey(old))).toBe(true);
    expect(await isLetIn(apiKey(key.text))).toBe(true);
    now += 3000;
    await keys.refresh();
    expect(await isLetIn(apiKey(old))).toBe(false);
    expect(await isLetIn(apiKey(key.text))).toBe(true);
  });

  it("knows nobody at once when it has not looked for too long, and looks", async () => {
    const key = await newKey();
    await revokeKey(store, key.slice(3, 15));
    expect(callers.known(apiKey(key))).toBeDefined();
    now += 1500;
    expect(callers.known(apiKey(key))).toBeUndefined();
    await expect(callers.authenticate(apiKey(key))).rejects.toThrow("not valid");
  });

  it("says that it cannot tell when the keys are away", async () => {
    const key = await newKey();
    store.isAway = true;
    now += 1500;
    expect(callers.known(apiKey(key))).toBeUndefined();
    await expect(callers.authenticate(apiKey(key))).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });

  it("looks no longer at what is longer than any key or token", async () => {
    const huge = `Bearer ${"a".repeat(100_000)}`;
    await expect(callers.authenticate(authorization(huge))).rejects.toThrow("cannot be used");
    await expect(callers.authenticate(apiKey("a".repeat(100_000)))).rejects.toThrow("not valid");
    const blanks = `Bearer ${" ".repeat(8000)}\n`;
    await expect(callers.authenticate(authorization(blanks))).rejects.toThrow("cannot be used");
  });

  it("remembers none of thousands of wrong keys", async () => {
    const key = await newKey();
    for (let i = 0; i < 5000; i++) callers.known(apiKey(newApiKey().text));
    expect(keys.size).toBe(1);
    expect(await isLetIn(apiKey(key))).toBe(true);
  });
});
