import { describe, expect, it } from "vitest";
import type { ServedModel } from "../../protocol/served-model.ts";
import { generateReply, generateRequest } from "../../protocol/generate-json.ts";
import type { InferenceRequest } from "../../protocol/inference.ts";
import { readJson } from "../../protocol/json-text.ts";
import { noParameters } from "../../protocol/parameters.ts";
import { modelInput, servedModel } from "../helpers/served-model.ts";

const target = { modelName: "m", modelVersion: "", forwarded: noParameters };
const text = servedModel("text", {
  maxBatchSize: 4,
  input: [modelInput("text", "TYPE_STRING", [1]), modelInput("n", "TYPE_INT64", [-1])],
});
const matrix = servedModel("matrix", { input: [modelInput("IN", "TYPE_FP32", [-1, 2, -1])] });
const fixed = servedModel("fixed", { input: [modelInput("IN", "TYPE_FP32", [4])] });

function read(model: ServedModel, json: unknown): InferenceRequest {
  const body = typeof json === "string" ? json : JSON.stringify(json);
  return readJson(body, (document) => generateRequest(document, model, target));
}

const shapes = (request: InferenceRequest): unknown => request.inputs.map(({ shape }) => shape);

describe("generateRequest", () => {
  it("makes tensors of members named like inputs, and parameters of all others", () => {
    const request = read(text, {
      text: "hi",
      id: "7",
      temperature: 0.5,
      parameters: { n: [1, 2], stop: "." },
    });
    expect(request.inputs).toEqual([
      {
        name: "text",
        datatype: "BYTES",
        shape: [1, 1],
        bytes: Uint8Array.of(2, 0, 0, 0, 104, 105),
      },
      expect.objectContaining({ name: "n", datatype: "INT64", shape: [1, 2] }),
    ]);
    expect(request.id).toBe("7");
    expect(Object.fromEntries(request.parameters)).toEqual({ temperature: 0.5, stop: "." });
  });

  it("lets the last variable dimension take the elements", () => {
    expect(shapes(read(matrix, { IN: [1, 2, 3, 4] }))).toEqual([[1, 2, 2]]);
    expect(shapes(read(text, { text: ["a", "b"] }))).toEqual([[2, 1]]);
    expect(shapes(read(fixed, { IN: [1, 2, 3, 4] }))).toEqual([[4]]);
  });

  it("keeps integers exact", () => {
    const [n] = read(text, '{"n":9007199254740993}').inputs;
    expect(n?.bytes).toEqual(Uint8Array.of(1, 0, 0, 0, 0, 0, 0x20, 0));
  });

  it.each([
    [{ IN: 5 }, "The schema can not convert input 'IN' to tensor with proper shape"],
    [{ IN: [1, 2, 3] }, "The schema can not convert input 'IN' to tensor with proper shape"],
    [{ IN: ["a", 1, 1, 1] }, "Unable to parse 'data': attempt to access JSON non-number as double"],
    [{ id: 5 }, "Unable to parse 'id': attempt to access JSON non-string as string"],
    [{ p: [1] }, "parameter 'p' has invalid type."],
    [{ parameters: 5 }, "Expected JSON object for keyword: 'parameters': attempt to access JSON"],
    [
      { IN: [1, 2, 3, 4], parameters: { IN: [1, 2, 3, 4] } },
      "Converting keyword: 'parameters': [request id: <id_unknown>] input 'IN' already exists in request",
    ],
    [
      { parameters: { p: {} } },
      "Converting keyword: 'parameters': parameter 'p' has invalid type.",
    ],
    [[], "attempt to get members for non-object"],
  ])("refuses %j", (json, complaint) => {
    expect(() => read(fixed, json)).toThrow(complaint);
  });

  it("refuses nested parameters where an input has that name", () => {
    const model = servedModel("m", { input: [modelInput("parameters", "TYPE_FP32", [1])] });
    expect(() => read(model, { parameters: {} })).toThrow(
      "Keyword 'parameters' for nested schema also given as input tensor name",
    );
  });
});

describe("generateReply", () => {
  it("writes one element as itself and several as a flat list", () => {
    const json = generateReply({
      modelName: "m",
      modelVersion: "1",
      id: "7",
      parameters: noParameters,
      outputs: [
        { name: "one", datatype: "INT8", shape: [1, 1], bytes: Uint8Array.of(5) },
        { name: "two", datatype: "INT8", shape: [2, 1], bytes: Uint8Array.of(5, 6) },
        { name: "none", datatype: "INT8", shape: [0], bytes: new Uint8Array() },
      ],
    });
    expect(json).toBe(
      '{"one":5,"two":[5,6],"none":[],"id":"7","model_name":"m","model_version":"1"}',
    );
  });
});
