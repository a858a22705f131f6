import { describe, expect, it } from "vitest";
import { type EdgeWord, edgeWordText, readEdgeWord } from "../../protocol/edge-word.ts";

const word: EdgeWord = {
  method: "POST",
  target: "/v2/models/digits/infer",
  headers: [null, null, null, "12", null, null],
  bodySha256: null,
  at: 1,
  nonce: "n",
  caller: { kind: "token", claims: { sub: "Zoë 🌊\n\u{7f}", scope: "infer read" } },
};

describe("edgeWordText", () => {
  it("is visible ASCII, whatever the claims of a token are, and can be read again", () => {
    const text = edgeWordText(word);
    expect(text).toMatch(/^\{[ -~]*\}$/u);
    expect(readEdgeWord(text)).toEqual(word);
  });
});

describe("readEdgeWord", () => {
  it.each<[what: string, change: object]>([
    ["method", { method: 1 }],
    ["target", { target: null }],
    ["headers", { headers: "a" }],
    ["body", { bodySha256: undefined }],
    ["time", { at: "1" }],
    ["nonce", { nonce: 1 }],
    ["caller", { caller: { kind: "key", id: "a" } }],
    ["kind of caller", { caller: { kind: "other", claims: {} } }],
  ])("finds no word with another kind of %s", (_, change) => {
    expect(readEdgeWord(JSON.stringify({ ...word, ...change }))).toBeUndefined();
  });

  it("finds none in other JSON", () => {
    expect(readEdgeWord("[]")).toBeUndefined();
  });
});
