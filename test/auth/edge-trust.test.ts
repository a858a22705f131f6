import { createHmac } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { keyDigest } from "../../auth/api-key.ts";
import type { Caller } from "../../auth/caller.ts";
import { type ArrivedCall, EdgeTrust, wordLifeMilliseconds } from "../../auth/edge-trust.ts";
import { createKey, revokeKey, rotateKey } from "../../auth/key-changes.ts";
import { KeyRing } from "../../auth/key-ring.ts";
import { wordsInMemory } from "../../auth/used-words.ts";
import { type EdgeCaller, type EdgeWord, edgeWordText } from "../../protocol/edge-word.ts";
import { SilentLog } from "../helpers/silent-log.ts";
import { anyPurpose } from "./key-store-cases.ts";
import { MemoryKeyStore } from "./memory-key-store.ts";

const secrets = ["the old one", "the new one"] as const;
const token: EdgeCaller = {
  kind: "token",
  claims: { sub: "alice", tenant: "blue", scope: "infer" },
};

let now: number;
let store: MemoryKeyStore;
let keys: KeyRing;
let trust: EdgeTrust;
let nonces: number;
beforeEach(async () => {
  now = 1_000_000;
  nonces = 0;
  store = new MemoryKeyStore();
  keys = await KeyRing.open({ store, log: new SilentLog(), lookMilliseconds: 1e9, now: () => now });
  const used = wordsInMemory(wordLifeMilliseconds, () => now);
  trust = new EdgeTrust({ secrets, keys, used, now: () => now });
});
afterEach(() => keys.close());

function wordOf(change: Partial<EdgeWord> = {}): EdgeWord {
  return {
    method: "POST",
    target: "/v2/models/digits/infer",
    headers: [null, null, null, "12", null, null],
    bodySha256: "ab",
    at: now,
    nonce: String(nonces++),
    caller: token,
    ...change,
  };
}

function signed(word: EdgeWord, secret: string = secrets[1]): string {
  const text = edgeWordText(word);
  return `${createHmac("sha256", secret).update(text).digest("hex")} ${text}`;
}

const arrived: ArrivedCall = {
  method: "POST",
  target: "/v2/models/digits/infer",
  header: (name) => (name === "inference-header-content-length" ? "12" : undefined),
};

function find(word: EdgeWord): Promise<Caller> {
  return trust.find(signed(word), arrived).then(({ caller }) => caller);
}

describe("EdgeTrust", () => {
  it("takes the edge's word for the holder of a token, and hands over what the body must be", async () => {
    const finding = await trust.find(signed(wordOf()), arrived);
    expect(finding.bodySha256).toBe("ab");
    expect(finding.caller).toMatchObject({ name: "token:alice", tenant: "blue" });
    expect([...finding.caller.scopes]).toEqual(["infer"]);
  });

  it("takes what any of its secrets has signed, and nothing else", async () => {
    await expect(trust.find(signed(wordOf(), secrets[0]), arrived)).resolves.toBeDefined();
    await expect(trust.find(signed(wordOf(), "another"), arrived)).rejects.toMatchObject({
      code: "UNAUTHENTICATED",
      message: "the edge's word for a call: it is not signed for this call",
    });
  });

  it.each<[what: string, change: Partial<EdgeWord>]>([
    ["method", { method: "GET" }],
    ["path", { target: "/v2/models/digits" }],
    ["header", { headers: [null, null, null, "13", null, null] }],
    ["missing header", { headers: [null, null, null, null, null, null] }],
    ["header that is not there", { headers: ["gzip", null, "12", null] }],
  ])("refuses a word for another %s", async (_, change) => {
    await expect(find(wordOf(change))).rejects.toThrow("it is not signed for this call");
  });

  it("takes a word for half a minute either way, and once", async () => {
    await expect(find(wordOf({ at: now - 30_000 }))).resolves.toBeDefined();
    await expect(find(wordOf({ at: now + 30_000 }))).resolves.toBeDefined();
    for (const at of [now - 30_001, now + 30_001]) {
      await expect(find(wordOf({ at }))).rejects.toThrow("it was signed too long ago");
    }
    const word = wordOf({ at: now + 30_000 });
    await find(word);
    for (const later of [0, 30_000, 60_000]) {
      now = word.at - 30_000 + later;
      await expect(find(word)).rejects.toThrow("it was used before");
    }
  });

  it("looks a key up again, with all that is known of it here", async () => {
    const { key } = await createKey(store, { ...anyPurpose, tenant: "green" }, now);
    const word = (): EdgeWord =>
      wordOf({
        caller: { kind: "key", id: key.id, sha256: keyDigest(key.text).toString("hex") },
      });
    now += 2000;
    expect(await find(word())).toMatchObject({ name: `key:${key.id}`, tenant: "green" });
    await rotateKey(store, key.id, now + 10_000);
    now += 2000;
    await expect(find(word())).resolves.toBeDefined();
    now += 10_000;
    await expect(find(word())).rejects.toThrow("given one that is not valid");
    await revokeKey(store, key.id);
    now += 2000;
    await expect(find(word())).rejects.toThrow("given one that is not valid");
  });

  it("refuses keys where it has none to look at", async () => {
    const used = wordsInMemory(wordLifeMilliseconds);
    trust = new EdgeTrust({ secrets, keys: undefined, used, now: () => now });
    const word = wordOf({ caller: { kind: "key", id: "a", sha256: "ab" } });
    await expect(find(word)).rejects.toThrow("it is for an API key, and there are none here");
  });

  it.each(["", " ", "ab", "ab {}", `${"0".repeat(64)} {`])("refuses %j", async (header) => {
    await expect(trust.find(header, arrived)).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
  });
});
