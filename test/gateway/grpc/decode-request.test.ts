import { describe, expect, it } from "vitest";
import { inferenceRequest } from "../../../gateway/grpc/decode-request.ts";
import { readRequest } from "../../../gateway/grpc/request-message.ts";
import type { InferenceRequest } from "../../../protocol/inference.ts";
import { noParameters } from "../../../protocol/parameters.ts";
import { encode } from "../../helpers/grpc-client.ts";
import type { Fields } from "../../helpers/grpc-client.ts";

const input = { name: "I", datatype: "INT32", shape: [1] };
const raw = Buffer.from([7, 0, 0, 0]);

function decoded(fields: Fields): InferenceRequest {
  const message = readRequest(
    encode("ModelInferRequest", {
      modelName: "M",
      inputs: [input],
      rawInputContents: [raw],
      ...fields,
    }),
  );
  return inferenceRequest(message, noParameters);
}

function parameter(name: string, value: Fields): InferenceRequest {
  return decoded({ parameters: { [name]: value } });
}

function classified(value: Fields): Fields {
  return { outputs: [{ name: "O", parameters: { classification: value } }] };
}

describe("inferenceRequest", () => {
  it("gives tensors their raw contents by their place", () => {
    const other = { name: "J", datatype: "UINT8", shape: [] };
    const { inputs } = decoded({
      inputs: [input, other],
      rawInputContents: [raw, Buffer.from("x")],
    });
    expect(inputs).toEqual([
      { ...input, bytes: raw },
      { ...other, bytes: Buffer.from("x") },
    ]);
  });

  it("refuses an input with both raw and typed contents", () => {
    const both = { ...input, contents: { intContents: [1] } };
    expect(() => decoded({ inputs: [both] })).toThrow(
      "contents field must not be specified when using raw_input_contents for 'I' for model 'M'",
    );
  });

  it.each([
    ["no contents at all", { rawInputContents: [] }, "I"],
    ["fewer raw contents than inputs", { inputs: [input, { ...input, name: "J" }] }, "J"],
  ])("refuses %s", (_what, fields, name) => {
    expect(() => decoded(fields)).toThrow(
      `unable to find data for input tensor '${name}' for model 'M' in request.`,
    );
  });

  it("refuses a datatype that nobody knows", () => {
    expect(() => decoded({ id: "7", inputs: [{ ...input, datatype: "INT4" }] })).toThrow(
      "[request id: 7] inference input 'I' data-type is 'INT4', but model 'M' expects one of BOOL, ",
    );
  });

  it("knows no shared memory regions", () => {
    const parameters = {
      shared_memory_region: { stringParam: "r" },
      shared_memory_byte_size: { int64Param: 1 },
    };
    const text = "Unable to find shared memory region: 'r'";
    expect(() => decoded({ inputs: [{ ...input, parameters }] })).toThrow(text);
    expect(() => decoded({ outputs: [{ name: "O", parameters }] })).toThrow(text);
    const wrong = { shared_memory_region: { int64Param: 1 } };
    expect(() => decoded({ inputs: [{ ...input, parameters: wrong }] })).toThrow(
      "invalid value type for 'shared_memory_region' parameter for tensor 'I', expected string_param.",
    );
  });

  it("lifts what concerns the request itself out of its parameters", () => {
    const request = decoded({
      parameters: {
        sequence_id: { int64Param: -3 },
        sequence_start: { boolParam: true },
        priority: { uint64Param: 2 },
        timeout: { int64Param: 500 },
        triton_enable_empty_final_response: { boolParam: true },
        mine: { stringParam: "x" },
      },
    });
    expect(request).toMatchObject({
      sequence: { id: 2n ** 64n - 3n, start: true, end: false },
      priority: 2,
      timeoutMicroseconds: 500,
    });
    expect([...request.parameters]).toEqual([["mine", "x"]]);
  });

  it("takes a text for a sequence's id, and a negative timeout for none", () => {
    expect(parameter("sequence_id", { stringParam: "a" }).sequence?.id).toBe("a");
    expect(parameter("sequence_id", { int64Param: 0 }).sequence).toBeUndefined();
    expect(parameter("timeout", { int64Param: -1 }).timeoutMicroseconds).toBe(0);
  });

  it.each([
    ["sequence_id", { boolParam: true }, "int64_param or string_param."],
    ["sequence_start", { int64Param: 1 }, "bool_param."],
    ["sequence_end", { stringParam: "1" }, "bool_param."],
    ["priority", { stringParam: "1" }, "int64_param or uint64_param."],
    ["timeout", { doubleParam: 1 }, "int64_param."],
    ["triton_enable_empty_final_response", { int64Param: 1 }, "bool_param."],
    ["mine", {}, "int64_param, bool_param, or string_param."],
  ])("refuses a %s of another type", (name, value, expected) => {
    expect(() => parameter(name, value)).toThrow(
      `invalid value type for '${name}' parameter, expected ${expected}`,
    );
  });

  it("refuses a negative priority", () => {
    expect(() => parameter("priority", { int64Param: -1 })).toThrow(
      "invalid value for 'priority', expected value >= 0.",
    );
  });

  it("refuses names that are reserved", () => {
    expect(() => parameter("triton_x", { int64Param: 1 })).toThrow(
      "parameter keys starting with 'triton_' are reserved for Triton usage. " +
        "Only the following keys starting with 'triton_' are allowed: triton_enable_empty_final_response",
    );
  });

  it("reads how many classes an output should name", () => {
    expect(decoded(classified({ int64Param: 3 })).outputs).toEqual([
      { name: "O", classification: 3 },
    ]);
    expect(() => decoded(classified({ int64Param: 0 }))).toThrow(
      "invalid value for 'classification' parameter, expected >= 0",
    );
    expect(() => decoded(classified({ stringParam: "3" }))).toThrow(
      "invalid value type for 'classification' parameter, expected int64_param",
    );
  });
});
