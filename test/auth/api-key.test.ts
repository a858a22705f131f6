import { describe, expect, it } from "vitest";
import { keyDigest, newApiKey } from "../../auth/api-key.ts";
import { keyIdIn } from "../../protocol/credentials.ts";

describe("newApiKey", () => {
  it("makes another key each time, whose id can be read and whose secret has 256 bits", () => {
    const keys = Array.from({ length: 100 }, () => newApiKey());
    expect(new Set(keys.map(({ id }) => id)).size).toBe(100);
    expect(keys.map(({ text }) => keyIdIn(text))).toEqual(keys.map(({ id }) => id));
    const [, , secret = ""] = /^tp_([0-9a-f]{12})_(.+)$/u.exec(keys[0]?.text ?? "") ?? [];
    expect(Buffer.from(secret, "base64url")).toHaveLength(32);
  });

  it("gives an old id another secret", () => {
    const { id, text } = newApiKey();
    const other = newApiKey(id);
    expect(other.id).toBe(id);
    expect(other.text).not.toBe(text);
    expect(keyDigest(other.text)).not.toEqual(keyDigest(text));
  });
});
