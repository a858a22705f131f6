import { describe, expect, it } from "vitest";
import { splitBody } from "../../protocol/binary-data.ts";
import { StatusCode } from "../../protocol/error.ts";
import { parseInfer } from "../../protocol/infer-json.ts";
import type { ParsedInfer } from "../../protocol/infer-json.ts";
import { inferReply } from "../../protocol/infer-reply.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import { noParameters } from "../../protocol/parameters.ts";

const target = { modelName: "m", modelVersion: "3", forwarded: new Map([["my-header", "h"]]) };
const input = { name: "IN", shape: [2], datatype: "INT32", data: [1, 2] };
const utf8 = new TextEncoder();

function parse(json: unknown, tail = new Uint8Array()): ParsedInfer {
  const text = typeof json === "string" ? json : JSON.stringify(json);
  return parseInfer(utf8.encode(text), tail, target);
}

const withParameters = (parameters: unknown): ParsedInfer => parse({ inputs: [input], parameters });

/** An input whose bytes stand behind the JSON. */
function binaryInput(name: string, size: number): object {
  return { name, shape: [size], datatype: "UINT8", parameters: { binary_data_size: size } };
}

describe("parseInfer", () => {
  it("reads a request with data in its JSON", () => {
    const { request, binaryOutputs } = parse({ id: "7", inputs: [input] });
    expect(request).toEqual({
      modelName: "m",
      modelVersion: "3",
      id: "7",
      inputs: [
        {
          name: "IN",
          shape: [2],
          datatype: "INT32",
          bytes: Uint8Array.of(1, 0, 0, 0, 2, 0, 0, 0),
        },
      ],
      outputs: [],
      parameters: new Map([["my-header", "h"]]),
      priority: 0,
      timeoutMicroseconds: 0,
    });
    expect(binaryOutputs).toEqual(new Set());
  });

  it("gives views on the tail, in the order of the inputs", () => {
    const tail = Uint8Array.of(1, 2, 3);
    const { request } = parse(
      { inputs: [binaryInput("A", 2), binaryInput("B", 0), binaryInput("C", 1)] },
      tail,
    );
    expect(request.inputs.map(({ bytes }) => [...bytes])).toEqual([[1, 2], [], [3]]);
    expect(request.inputs[0]?.bytes.buffer).toBe(tail.buffer);
  });

  it("refuses a tail that is too short or too long", () => {
    const floats = {
      name: "IN",
      shape: [2],
      datatype: "FP32",
      parameters: { binary_data_size: 8 },
    };
    expect(() => parse({ inputs: [floats] }, new Uint8Array(4))).toThrow(
      "unexpected size for input 'IN', expecting 4 additional bytes for model 'm'",
    );
    expect(() => parse({ inputs: [floats] }, new Uint8Array(9))).toThrow(
      "unexpected additional input data for model 'm'",
    );
  });

  it.each([
    [{}, "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'"],
    [[], "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'"],
    [{ inputs: 5 }, "Unable to parse 'inputs': attempt to access JSON non-array as array"],
    [{ inputs: [], outputs: 5 }, "Unable to parse 'outputs': attempt to access JSON non-array"],
    [{ inputs: [], id: 5 }, "Unable to parse 'id': attempt to access JSON non-string as string"],
    [{ inputs: [{ ...input, name: 5 }] }, "Unable to parse 'name': attempt to access JSON non-str"],
    [{ inputs: [{ data: [] }] }, "Unable to parse 'name': attempt to access non-existing object"],
    [{ inputs: [{ ...input, shape: 5 }] }, "Unable to parse 'shape': attempt to access JSON non-a"],
    [{ inputs: [{ ...input, datatype: "FLOAT" }] }, "invalid datatype for input IN"],
    [{ inputs: [{ ...input, data: undefined }] }, "But no field is set"],
    [
      { inputs: [5] },
      "Input must set only one of the following fields: 'data', 'binary_data_size'",
    ],
    [
      { inputs: [{ ...input, parameters: { binary_data_size: 8 } }] },
      "But set 'data' 'binary_data_size'",
    ],
    [
      { inputs: [{ ...input, data: undefined, parameters: { shared_memory_region: "r" } }] },
      "Unable to find shared memory region: 'r'",
    ],
    [{ inputs: [input], outputs: [{}] }, "Unable to parse 'name'"],
    [
      { inputs: [input], outputs: [{ name: "O", parameters: { binary_data: 1 } }] },
      "Unable to parse 'binary_data': attempt to access JSON non-boolean as boolean",
    ],
    [
      { inputs: [input], outputs: [{ name: "O", parameters: { classification: -1 } }] },
      "Unable to set 'classification': attempt to access JSON non-unsigned-integer",
    ],
    [
      {
        inputs: [input],
        outputs: [{ name: "O", parameters: { shared_memory_region: "r", binary_data: true } }],
      },
      "Output can't set both 'shared_memory_region' and 'binary_data'",
    ],
  ])("refuses %j", (json, complaint) => {
    expect(() => parse(json)).toThrow(complaint);
  });

  it.each([
    [2 ** 53, "9007199254740992"],
    [2 ** 31, "2147483648"],
    [-1, "-1"],
    [1.5, "1.5"],
    ["2", "a string"],
  ])("refuses a dimension of %j as the client's mistake", (dimension, shown) => {
    expect(() => parse({ inputs: [{ ...input, shape: [1, dimension] }] })).toThrow(
      expect.objectContaining({
        code: StatusCode.InvalidArg,
        message: `invalid shape for input 'IN': dimensions must be integers from 0 to 2^31-1, got ${shown}`,
      }),
    );
  });

  it("lifts the protocol's own parameters and keeps all others", () => {
    const { request } = withParameters({
      priority: 2,
      timeout: 5000,
      sequence_id: "s",
      sequence_start: true,
      word: "w",
      flag: false,
      half: 0.5,
      count: -3,
    });
    expect(request).toMatchObject({
      priority: 2,
      timeoutMicroseconds: 5000,
      sequence: { id: "s", start: true, end: false },
    });
    expect(Object.fromEntries(request.parameters)).toEqual({
      "my-header": "h",
      word: "w",
      flag: false,
      half: 0.5,
      count: -3n,
    });
  });

  it("keeps integers of 64 bits exact in parameters", () => {
    const json = JSON.stringify({ inputs: [input], parameters: { sequence_id: 1, big: 1 } });
    const { request } = parse(json.replaceAll(":1", ":18446744073709551615"));
    expect(request.sequence?.id).toBe(18446744073709551615n);
    expect(request.parameters.get("big")).toBe(18446744073709551615n);
  });

  it.each([
    [5, "failed to get request params.: attempt to get members for non-object"],
    [{ triton_x: 1 }, "parameter keys starting with 'triton_' are reserved for Triton usage"],
    [
      { a: null },
      "parameter 'a' has invalid type. It should be either 'int', 'bool', or 'string'.",
    ],
    [{ a: [1] }, "parameter 'a' has invalid type."],
    [{ priority: -1 }, "Unable to parse 'priority': attempt to access JSON non-unsigned-integer"],
    [{ timeout: "5" }, "Unable to parse 'timeout': attempt to access JSON non-unsigned-integer"],
    [{ sequence_id: -5 }, "Unable to parse 'sequence_id': attempt to access JSON non-string"],
    [{ sequence_end: 1 }, "Unable to parse 'sequence_end': attempt to access JSON non-boolean"],
  ])("refuses parameters %j", (parameters, complaint) => {
    expect(() => withParameters(parameters)).toThrow(complaint);
  });

  it("knows which outputs are wanted as binary data", () => {
    const outputs = [
      { name: "A", parameters: { binary_data: true } },
      { name: "B" },
      { name: "C", parameters: { classification: 2, binary_data: false } },
    ];
    const named = parse({ inputs: [input], outputs, parameters: { binary_data_output: true } });
    expect(named.binaryOutputs).toEqual(new Set(["A"]));
    expect(named.request.outputs).toEqual([
      { name: "A" },
      { name: "B" },
      { name: "C", classification: 2 },
    ]);
    expect(withParameters({ binary_data_output: true }).binaryOutputs).toBe("all");
  });
});

describe("splitBody", () => {
  const body = Uint8Array.of(1, 2, 3);

  it("cuts where the header says, and takes all for JSON without one", () => {
    expect(splitBody(body, "2")).toEqual({ head: body.subarray(0, 2), tail: body.subarray(2) });
    expect(splitBody(body, undefined).head).toEqual(body);
    expect(splitBody(body, "0").tail).toEqual(body);
  });

  it.each(["4", "-1", "zz", "1.5", ""])("refuses a header of '%s'", (header) => {
    expect(() => splitBody(body, header)).toThrow(
      "inference header size should be in range (0, 3)",
    );
  });
});

describe("inferReply", () => {
  const response: InferenceResponse = {
    modelName: "m",
    modelVersion: "1",
    id: "",
    parameters: noParameters,
    outputs: [
      { name: "A", datatype: "INT8", shape: [1, 2], bytes: Uint8Array.of(1, 255) },
      { name: "B", datatype: "FP32", shape: [1], bytes: new Uint8Array(4) },
    ],
  };

  it("writes outputs into the JSON, or behind it in the same order", () => {
    const json = inferReply(response, new Set());
    expect(json.head).toBe(
      '{"model_name":"m","model_version":"1","outputs":[' +
        '{"name":"A","datatype":"INT8","shape":[1,2],"data":[1,-1]},' +
        '{"name":"B","datatype":"FP32","shape":[1],"data":[0.0]}]}',
    );
    expect(json.tail).toEqual([]);
    const binary = inferReply(response, "all");
    expect(binary.head).toContain('"shape":[1,2],"parameters":{"binary_data_size":2}}');
    expect(binary.tail).toEqual(response.outputs.map(({ bytes }) => bytes));
    expect(inferReply(response, new Set(["B"])).tail).toHaveLength(1);
  });

  it("echoes the id and the parameters, whatever characters are in them", () => {
    const parameters = new Map<string, bigint | string | number | boolean>([
      ['q"', 18446744073709551615n],
      ["s", "é\n"],
      ["d", 0.5],
      ["b", true],
    ]);
    const { head } = inferReply({ ...response, id: 'a"\u0000', parameters, outputs: [] }, "all");
    expect(head).toBe(
      '{"id":"a\\"\\u0000","model_name":"m","model_version":"1",' +
        '"parameters":{"q\\"":18446744073709551615,"s":"é\\n","d":0.5,"b":true},"outputs":[]}',
    );
  });
});
