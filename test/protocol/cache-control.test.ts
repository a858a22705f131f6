import { describe, expect, it } from "vitest";
import { cacheControlOf, withCacheControl } from "../../protocol/cache-control.ts";
import { parseInfer } from "../../protocol/infer-json.ts";
import type { InferenceRequest } from "../../protocol/inference.ts";
import { noParameters } from "../../protocol/parameters.ts";

function requestWith(parameters: object): InferenceRequest {
  const head = Buffer.from(JSON.stringify({ parameters, inputs: [] }));
  const target = { modelName: "m", modelVersion: "", forwarded: noParameters };
  return parseInfer(head, new Uint8Array(), target).request;
}

describe("withCacheControl", () => {
  it.each([
    ["no-cache", "no-cache"],
    ["No-Store", "no-store"],
    ["max-age=0, no-cache", "no-cache"],
    ["no-cache,no-store", "no-store"],
    ["max-age=0", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("reads the header %j as %j", (header, expected) => {
    expect(withCacheControl(requestWith({}), header).cacheControl).toBe(expected);
  });

  it("leaves a request as it is where the header says nothing", () => {
    const request = requestWith({ cache_control: "no-store" });
    expect(withCacheControl(request, "public")).toBe(request);
  });
});

describe("the parameter cache_control", () => {
  it("is no parameter of the model's when it asks something of the cache", () => {
    const request = requestWith({ cache_control: "no-cache", other: "x" });
    expect(request.cacheControl).toBe("no-cache");
    expect([...request.parameters.keys()]).toEqual(["other"]);
  });

  it.each(["public", 7, true])("belongs to the model when it is %j", (value) => {
    const request = requestWith({ cache_control: value });
    expect(request).not.toHaveProperty("cacheControl");
    expect(request.parameters.has("cache_control")).toBe(true);
    expect(cacheControlOf(value)).toBeUndefined();
  });
});
