import { describe, expect, it } from "vitest";
import { newApiKey } from "../../auth/api-key.ts";
import { keyIdIn, shownCredential } from "../../protocol/credentials.ts";

describe("keyIdIn", () => {
  const { text } = newApiKey();
  it.each([
    "",
    "tp_",
    text.slice(0, -1),
    `${text}a`,
    ` ${text}`,
    `${text}\n`,
    text.toUpperCase(),
    text.replace("tp_", "tq_"),
    `${text.slice(0, -1)}=`,
    `${text.slice(0, -1)}é`,
  ])("finds none in %j", (other) => {
    expect(keyIdIn(other)).toBeUndefined();
  });
});

describe("shownCredential", () => {
  it("tells keys from tokens, and takes X-API-Key first", () => {
    expect(shownCredential("Bearer a.b.c", undefined)).toEqual({ kind: "token", text: "a.b.c" });
    expect(shownCredential("bEARER   tp_1", undefined)).toEqual({ kind: "key", text: "tp_1" });
    expect(shownCredential("Bearer a.b.c", "x")).toEqual({ kind: "key", text: "x" });
  });

  it.each([undefined, "", "Bearer", "Bearer a b", "Basic YTpi", `Bearer ${"a".repeat(8192)}`])(
    "finds none in %j",
    (authorization) => {
      expect(shownCredential(authorization, undefined)).toBeUndefined();
    },
  );
});
