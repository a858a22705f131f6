import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contentsBytes } from "../../../gateway/grpc/typed-contents.ts";
import type { Datatype } from "../../../protocol/datatype.ts";
import { bytesElements } from "../../../protocol/bytes-tensor.ts";
import { encode } from "../../helpers/grpc-client.ts";
import type { Fields } from "../../helpers/grpc-client.ts";

function convert(datatype: Datatype, ...pieces: readonly Fields[]): Buffer {
  const encoded = pieces.map((piece) => encode("InferTensorContents", piece));
  return contentsBytes(encoded, datatype, "input tensor 'I' for model 'M'");
}

const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const uint32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });

/** A datatype with its field, values for it, and the typed array that holds them truncated. */
const cases: [Datatype, string, fc.Arbitrary<number>, (list: number[]) => ArrayBufferView][] = [
  ["INT8", "intContents", int32, (list) => Int8Array.from(list)],
  ["INT16", "intContents", int32, (list) => Int16Array.from(list)],
  ["INT32", "intContents", int32, (list) => Int32Array.from(list)],
  ["UINT8", "uintContents", uint32, (list) => Uint8Array.from(list)],
  ["UINT16", "uintContents", uint32, (list) => Uint16Array.from(list)],
  ["UINT32", "uintContents", uint32, (list) => Uint32Array.from(list)],
  ["FP32", "fp32Contents", fc.float(), (list) => Float32Array.from(list)],
  ["FP64", "fp64Contents", fc.double(), (list) => Float64Array.from(list)],
];

describe("contentsBytes", () => {
  it.each(cases)("converts %s from %s", (datatype, field, values, typed) => {
    fc.assert(
      fc.property(fc.array(values), fc.array(values), (first, second) => {
        const array = typed([...first, ...second]);
        const expected = Buffer.from(array.buffer, array.byteOffset, array.byteLength);
        expect(convert(datatype, { [field]: first }, { [field]: second })).toEqual(expected);
      }),
    );
  });

  it("keeps 64-bit integers exact", () => {
    const values = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    fc.assert(
      fc.property(fc.array(values), (list) => {
        const signed = Buffer.from(BigInt64Array.from(list).buffer);
        const unsigned = list.map((each) => BigInt.asUintN(64, each));
        expect(convert("INT64", { int64Contents: list.map(String) })).toEqual(signed);
        expect(convert("UINT64", { uint64Contents: unsigned.map(String) })).toEqual(signed);
      }),
    );
  });

  it("gives BYTES elements their lengths", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 })), (list) => {
        const elements = list.map((each) => Buffer.from(each));
        const tensor = convert("BYTES", { bytesContents: elements });
        expect([...bytesElements(tensor)].map((each) => Buffer.from(each))).toEqual(elements);
      }),
    );
  });

  it("takes any varint but zero for true", () => {
    const contents = Buffer.from("0a080001028001808000", "hex");
    expect([...contentsBytes([contents], "BOOL", "")]).toEqual([0, 1, 1, 1, 0]);
  });

  it("reads elements that are not packed, also among packed ones", () => {
    const contents = Buffer.from("100112020203107f", "hex");
    expect([...contentsBytes([contents], "INT8", "")]).toEqual([1, 2, 3, 127]);
  });

  it("gives packed floats as a view", () => {
    const encoded = encode("InferTensorContents", { fp32Contents: [1, 2, 3] });
    expect(contentsBytes([encoded], "FP32", "").buffer).toBe(encoded.buffer);
  });

  it("passes over unknown fields", () => {
    const contents = Buffer.from("f801011001fa010161", "hex");
    expect([...contentsBytes([contents], "INT8", "")]).toEqual([1]);
  });

  it("makes nothing of nothing", () => {
    expect(convert("FP16", {})).toHaveLength(0);
  });

  it("refuses another datatype's field", () => {
    expect(() => convert("INT32", { fp32Contents: [1] })).toThrow(
      "unexpected explicit tensor data for input tensor 'I' for model 'M' of type 'FP32', expected datatype 'INT32'",
    );
    expect(() => convert("FP16", { bytesContents: [Buffer.alloc(0)] })).toThrow(
      "of type 'BYTES', expected datatype 'FP16'",
    );
  });

  it("refuses a second field", () => {
    expect(() => convert("INT32", { intContents: [1], fp32Contents: [1] })).toThrow(
      "unexpected explicit tensor data for input tensor 'I' for model 'M', binary data was already supplied.",
    );
  });

  it.each([
    ["half a float", "32021111"],
    ["a varint without an end", "120180"],
    ["a varint of eleven bytes", "120bffffffffffffffffffff01"],
  ])("refuses %s", (_what, hex) => {
    const datatype = hex.startsWith("32") ? "FP32" : "INT32";
    expect(() => contentsBytes([Buffer.from(hex, "hex")], datatype, "")).toThrow(
      "Unable to parse request",
    );
  });
});
