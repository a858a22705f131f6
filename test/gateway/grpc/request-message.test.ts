import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readRequest } from "../../../gateway/grpc/request-message.ts";
import type { RequestMessage, WireParameters } from "../../../gateway/grpc/request-message.ts";
import { encode } from "../../helpers/grpc-client.ts";
import type { Fields } from "../../helpers/grpc-client.ts";

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const bytes = fc.uint8Array({ maxLength: 20 }).map((array) => Buffer.from(array));

/** A parameter as protobufjs takes it, and as we should read it. */
const parameter = fc.oneof(
  fc.boolean().map((value) => [{ boolParam: value }, value] as const),
  int64.map((value) => [{ int64Param: value.toString() }, value] as const),
  text.map((value) => [{ stringParam: value }, value] as const),
  fc.double().map((value) => [{ doubleParam: value }, value] as const),
  uint64.map((value) => [{ uint64Param: value.toString() }, value] as const),
  fc.constant([{}, undefined] as const),
);
const key = text.filter((name) => name !== "__proto__");
const parameters = fc.dictionary(key, parameter, { maxKeys: 4, noNullPrototype: true });
const shape = fc.array(fc.integer({ min: -1, max: 2 ** 31 }), { maxLength: 4 });
const input = fc.record({
  name: text,
  datatype: text,
  shape,
  parameters,
  contents: fc.option(fc.array(fc.integer(), { maxLength: 5 }), { nil: undefined }),
});
const request = fc.record({
  modelName: text,
  modelVersion: text,
  id: text,
  parameters,
  inputs: fc.array(input, { maxLength: 3 }),
  outputs: fc.array(fc.record({ name: text, parameters }), { maxLength: 3 }),
  rawInputContents: fc.array(bytes, { maxLength: 3 }),
});
type Request = typeof request extends fc.Arbitrary<infer Value> ? Value : never;
type Parameters = Request["parameters"];

function sent(parametersGiven: Parameters): Fields {
  return Object.fromEntries(Object.entries(parametersGiven).map(([name, [wire]]) => [name, wire]));
}

function expected(parametersGiven: Parameters): WireParameters | undefined {
  const entries = Object.entries(parametersGiven);
  return entries.length === 0
    ? undefined
    : new Map(entries.map(([name, [, value]]) => [name, value]));
}

function wireOf(given: Request): Buffer {
  return encode("ModelInferRequest", {
    ...given,
    parameters: sent(given.parameters),
    inputs: given.inputs.map((each) => ({
      ...each,
      parameters: sent(each.parameters),
      contents: each.contents && { intContents: each.contents },
    })),
    outputs: given.outputs.map((each) => ({ ...each, parameters: sent(each.parameters) })),
  });
}

function messageOf(given: Request): RequestMessage {
  return {
    ...given,
    parameters: expected(given.parameters),
    inputs: given.inputs.map((each) => ({
      ...each,
      parameters: expected(each.parameters),
      contents: each.contents && [encode("InferTensorContents", { intContents: each.contents })],
    })),
    outputs: given.outputs.map((each) => ({
      ...each,
      parameters: expected(each.parameters),
    })),
  };
}

/** One field that no message of the protocol has, in each wire type. */
const unknownField = fc.constantFrom(
  Buffer.from("f80101", "hex"), // 31: varint
  Buffer.from("f9010102030405060708", "hex"), // 31: fixed64
  Buffer.from("fa0103616263", "hex"), // 31: bytes
  Buffer.from("fb010801fc01", "hex"), // 31: a group with one varint
  Buffer.from("fd0101020304", "hex"), // 31: fixed32
  Buffer.from("08ffffffffffffffffff01", "hex"), // model_name as a varint
);

function outcome(wire: Buffer): string {
  try {
    readRequest(wire);
    return "read";
  } catch (error) {
    return error instanceof Error ? error.name : "nothing to throw";
  }
}

describe("readRequest", () => {
  it("reads what protobufjs writes", () => {
    fc.assert(
      fc.property(request, (given) => {
        expect(readRequest(wireOf(given))).toEqual(messageOf(given));
      }),
    );
  });

  it("passes over unknown fields wherever they stand", () => {
    fc.assert(
      fc.property(request, unknownField, unknownField, (given, before, after) => {
        const wire = Buffer.concat([before, wireOf(given), after]);
        expect(readRequest(wire)).toEqual(messageOf(given));
      }),
    );
  });

  it("takes scalars from the last of two and lists from both", () => {
    fc.assert(
      fc.property(request, request, (first, second) => {
        const merged = readRequest(Buffer.concat([wireOf(first), wireOf(second)]));
        const [a, b] = [messageOf(first), messageOf(second)];
        expect(merged).toEqual({
          modelName: b.modelName || a.modelName,
          modelVersion: b.modelVersion || a.modelVersion,
          id: b.id || a.id,
          parameters:
            a.parameters || b.parameters
              ? new Map([...(a.parameters ?? []), ...(b.parameters ?? [])])
              : undefined,
          inputs: [...a.inputs, ...b.inputs],
          outputs: [...a.outputs, ...b.outputs],
          rawInputContents: [...a.rawInputContents, ...b.rawInputContents],
        });
      }),
    );
  });

  it("never throws anything but an InferenceError, however the bytes are damaged", () => {
    fc.assert(
      fc.property(request, fc.nat(), fc.nat(255), fc.nat(), (given, at, byte, end) => {
        const wire = wireOf(given);
        if (wire.length > 0) wire[at % wire.length] = byte;
        expect(outcome(wire.subarray(0, end % (wire.length + 1)))).toBeOneOf([
          "read",
          "InferenceError",
        ]);
      }),
    );
  });

  it("gives views on the message", () => {
    const wire = encode("ModelInferRequest", { rawInputContents: [Buffer.from("abc")] });
    expect(readRequest(wire).rawInputContents[0]?.buffer).toBe(wire.buffer);
  });

  it("reads a shape that is not packed", () => {
    const wire = Buffer.from("2a041802187f", "hex");
    expect(readRequest(wire).inputs[0]?.shape).toEqual([2, 127]);
  });

  it("keeps both pieces of contents that came in two", () => {
    const piece = Buffer.from("2a031201", "hex");
    const wire = Buffer.concat([
      Buffer.from([0x2a, 10]),
      Buffer.from([...piece, 0x01, ...piece, 0x02]),
    ]);
    expect(readRequest(wire).inputs[0]?.contents).toEqual([
      Buffer.from("120101", "hex"),
      Buffer.from("120102", "hex"),
    ]);
  });

  it.each([
    ["a varint of eleven bytes", "48ffffffffffffffffffff01"],
    ["field number zero", "0001"],
    ["a group that was never begun", "0c"],
    ["a group that is never ended", "4b0801"],
    ["a group that another one ends", "4b54"],
    ["an unknown wire type", "4e"],
    ["a sub-message that ends behind its parent", "2a030a05616263"],
    ["a text that is not UTF-8", "0a02fffe"],
    ["groups nested beyond reason", "4b".repeat(200)],
  ])("refuses %s", (_what, hex) => {
    expect(() => readRequest(Buffer.from(hex, "hex"))).toThrow("Unable to parse request");
  });

  it("refuses more inputs than any model has", () => {
    const wire = Buffer.from("2a00".repeat(16_385), "hex");
    expect(() => readRequest(wire)).toThrow("given more than 16384 inputs");
  });

  it("takes the replacement character itself as text", () => {
    const wire = encode("ModelInferRequest", { id: "\uFFFD" });
    expect(readRequest(wire).id).toBe("\uFFFD");
  });
});
