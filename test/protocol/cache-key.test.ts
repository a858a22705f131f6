import { describe, expect, it } from "vitest";
import { sha256 } from "../../cache/sha256.ts";
import { type CacheScope, cacheKey } from "../../protocol/cache-key.ts";
import type { InferenceRequest } from "../../protocol/inference.ts";
import type { Tensor } from "../../protocol/tensor.ts";

const scope: CacheScope = {
  tenant: "t",
  modelName: "m",
  modelVersion: "1",
  digest: "d",
  outputs: [{ name: "OUT" }, { name: "OUT2" }],
};
const input: Tensor = {
  name: "IN",
  datatype: "UINT8",
  shape: [2, 2],
  bytes: Uint8Array.of(1, 2, 3, 4),
};
const request: InferenceRequest = {
  modelName: "m",
  modelVersion: "",
  id: "",
  inputs: [input],
  outputs: [{ name: "OUT" }],
  parameters: new Map([["temperature", 1]]),
  priority: 0,
  timeoutMicroseconds: 0,
};

function keyOf(more: Partial<InferenceRequest>, within: Partial<CacheScope> = {}): string {
  return cacheKey({ ...scope, ...within }, { ...request, ...more }, sha256);
}

function inputs(...given: Partial<Tensor>[]): Partial<InferenceRequest> {
  return { inputs: given.map((one) => ({ ...input, ...one })) };
}

/** The pieces that are hashed, as one text. */
function bytesOf(more: Partial<InferenceRequest>): string {
  return cacheKey(scope, { ...request, ...more }, (pieces) =>
    Buffer.concat(pieces.map((piece) => Buffer.from(piece))).toString("latin1"),
  );
}

describe("cacheKey", () => {
  const plain = keyOf({});

  it.each<[string, Partial<InferenceRequest>]>([
    ["the id", { id: "7" }],
    ["the priority", { priority: 3 }],
    ["the timeout", { timeoutMicroseconds: 1000 }],
    ["how the version was asked for", { modelVersion: "1" }],
    ["what the client asks of the cache", { cacheControl: "no-cache" }],
  ])("is the same whatever %s is", (_, more) => {
    expect(keyOf(more)).toBe(plain);
  });

  it.each<[string, Partial<InferenceRequest>]>([
    ["bytes", inputs({ bytes: Uint8Array.of(1, 2, 3, 5) })],
    ["shapes of the same bytes", inputs({ shape: [4, 1] })],
    ["datatypes of the same bytes", inputs({ datatype: "INT8" })],
    ["names of inputs", inputs({ name: "IN2" })],
    ["inputs", inputs({}, { name: "IN2" })],
    ["requested outputs", { outputs: [{ name: "OUT2" }] }],
    ["numbers of outputs", { outputs: [] }],
    ["classes of all outputs", { outputs: [{ name: "OUT", classification: 1 }, { name: "OUT2" }] }],
    ["orders of outputs", { outputs: [{ name: "OUT2" }, { name: "OUT" }] }],
    ["classes", { outputs: [{ name: "OUT", classification: 3 }] }],
    ["values of parameters", { parameters: new Map([["temperature", 2]]) }],
    ["types of the same value", { parameters: new Map([["temperature", 1n]]) }],
    ["parameters", { parameters: new Map() }],
  ])("is another one for other %s", (_, more) => {
    expect(keyOf(more)).not.toBe(plain);
  });

  it.each<[string, Partial<CacheScope>]>([
    ["tenant", { tenant: "t2" }],
    ["model", { modelName: "m2" }],
    ["version", { modelVersion: "2" }],
    ["digest of what was loaded", { digest: "d2" }],
  ])("is another one for another %s", (_, within) => {
    expect(keyOf({}, within)).not.toBe(plain);
  });

  it("is the same for inputs and parameters in any order", () => {
    const [a, b] = [{ name: "A" }, { name: "B", bytes: Uint8Array.of(5, 6, 7, 8) }];
    expect(keyOf(inputs(a, b))).toBe(keyOf(inputs(b, a)));
    const one = new Map([["x", 1], ["y", 2]]); // prettier-ignore
    const other = new Map([["y", 2], ["x", 1]]); // prettier-ignore
    expect(keyOf({ parameters: one })).toBe(keyOf({ parameters: other }));
  });

  it("is the same whether all outputs are named or none", () => {
    const all = { outputs: [{ name: "OUT" }, { name: "OUT2" }] };
    expect(keyOf(all)).toBe(keyOf({ outputs: [] }));
    expect(keyOf({ outputs: all.outputs.toReversed() })).not.toBe(keyOf(all));
  });

  it("cannot be moved from one field into the next", () => {
    const names = [["a", "bc"], ["ab", "c"], ["a\",\"b", "c"]]; // prettier-ignore
    const keys = names.map(([tenant = "", modelName = ""]) => keyOf({}, { tenant, modelName }));
    const [one, two] = [Uint8Array.of(1), Uint8Array.of(1, 2)];
    keys.push(
      keyOf(inputs({ name: "A", bytes: one }, { name: "B", bytes: two })),
      keyOf(inputs({ name: "A", bytes: two }, { name: "B", bytes: one })),
    );
    expect(new Set(keys).size).toBe(keys.length);
  });

  it("hashes bytes that do not change from one release to the next", () => {
    expect(bytesOf({})).toBe(
      '[1,"t","m","1","d",[["IN","UINT8",[2,2],4]],[["OUT",0]],[["temperature","number","1"]]]' +
        "\u0001\u0002\u0003\u0004",
    );
  });

  it("takes any hash function, one that answers later too", async () => {
    const later = cacheKey(scope, request, async (pieces) => {
      const bytes = Buffer.concat(pieces.map((piece) => Buffer.from(piece)));
      return Buffer.from(await crypto.subtle.digest("SHA-256", bytes)).toString("base64url");
    });
    expect(await later).toBe(plain);
  });
});
