import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  encodeResponse,
  encodeResponseFrame,
  encodeStreamError,
  encodeStreamResponse,
  prefixBytes,
} from "../../../gateway/grpc/encode-response.ts";
import { datatypes } from "../../../protocol/datatype.ts";
import type { InferenceResponse } from "../../../protocol/inference.ts";
import type { ParameterValue } from "../../../protocol/parameters.ts";
import type { Tensor } from "../../../protocol/tensor.ts";
import { messages } from "../../../repository/proto-files.ts";

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const value: fc.Arbitrary<ParameterValue> = fc.oneof(
  fc.boolean(),
  text,
  fc.double(),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
);
const output = fc.record({
  name: text,
  datatype: fc.constantFrom(...datatypes),
  shape: fc.array(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), { maxLength: 5 }),
  bytes: fc.uint8Array({ maxLength: 300 }),
});
const key = text.filter((name) => name !== "__proto__");
const response: fc.Arbitrary<InferenceResponse> = fc.record({
  modelName: text,
  modelVersion: text,
  id: text,
  outputs: fc.array(output, { maxLength: 3 }),
  parameters: fc.array(fc.tuple(key, value), { maxLength: 4 }).map((entries) => new Map(entries)),
});

/** What protobufjs should read, with 64-bit integers as texts. */
function fieldsOf(given: InferenceResponse): object {
  const parameters = [...given.parameters].map(([name, each]) => [name, parameterOf(each)]);
  return {
    modelName: given.modelName,
    modelVersion: given.modelVersion,
    id: given.id,
    parameters: Object.fromEntries(parameters),
    outputs: given.outputs.map(({ name, datatype, shape }) => ({
      name,
      datatype,
      shape: shape.map(String),
      parameters: {},
      contents: null,
    })),
    rawOutputContents: given.outputs.map(({ bytes }) => Buffer.from(bytes)),
  };
}

function parameterOf(given: ParameterValue): object {
  if (typeof given === "boolean") return { boolParam: given };
  if (typeof given === "string") return { stringParam: given };
  if (typeof given === "number") return { doubleParam: given };
  return given < 2n ** 63n ? { int64Param: `${given}` } : { uint64Param: `${given}` };
}

function read(type: string, bytes: Buffer): unknown {
  const reflected = messages().type(type);
  const options = { longs: String, defaults: true };
  return reflected.toObject(reflected.decode(bytes), options);
}

describe("encodeResponse", () => {
  it("writes what protobufjs reads", () => {
    fc.assert(
      fc.property(response, (given) => {
        expect(read("ModelInferResponse", encodeResponse(given))).toEqual(fieldsOf(given));
      }),
    );
  });

  it("refuses a response that no gRPC message can hold", () => {
    // Its pages are never touched: only its length is looked at.
    const bytes = new Uint8Array(2 ** 31);
    const huge: InferenceResponse = {
      modelName: "",
      modelVersion: "",
      id: "",
      parameters: new Map(),
      outputs: [{ name: "O", datatype: "UINT8", shape: [2 ** 31], bytes }],
    };
    expect(() => encodeResponse(huge)).toThrow(
      "Response has byte size 2147483673 which exceeds gRPC's byte size limit 2147483647.",
    );
  });
});

function filled(name: string, length: number): Tensor {
  const bytes = new Uint8Array(length).fill(length);
  return { name, datatype: "UINT8", shape: [length], bytes };
}

describe("encodeResponseFrame", () => {
  it.each([[[]], [[5]], [[100_000]], [[5, 70_000, 6, 80_000]], [[70_000, 80_000, 7]]])(
    "writes the same with tensors of %j bytes, and no copy of a large one",
    (lengths: readonly number[]) => {
      const outputs = lengths.map((length, i) => filled(`O${i}`, length));
      const given = { modelName: "m", modelVersion: "1", id: "", parameters: new Map(), outputs };
      const pieces = encodeResponseFrame(given);
      const whole = Buffer.concat(pieces);
      const message = encodeResponse(given);
      expect([whole[0], whole.readUInt32BE(1)]).toEqual([0, message.length]);
      expect(whole.subarray(prefixBytes).equals(message)).toBe(true);
      const large = outputs.filter(({ bytes }) => bytes.length > 65_536);
      expect(large.every(({ bytes }) => pieces.includes(bytes))).toBe(true);
    },
  );
});

describe("encodeStreamResponse", () => {
  it("wraps the response", () => {
    fc.assert(
      fc.property(response, (given) => {
        expect(read("ModelStreamInferResponse", encodeStreamResponse(given))).toEqual({
          errorMessage: "",
          inferResponse: fieldsOf(given),
        });
      }),
    );
  });
});

describe("encodeStreamError", () => {
  it("puts the message beside the response", () => {
    fc.assert(
      fc.property(text, response, (errorMessage, given) => {
        expect(read("ModelStreamInferResponse", encodeStreamError(errorMessage, given))).toEqual({
          errorMessage,
          inferResponse: fieldsOf(given),
        });
      }),
    );
  });
});
