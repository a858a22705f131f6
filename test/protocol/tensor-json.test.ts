import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { joinBytesElements } from "../../protocol/bytes-tensor.ts";
import type { Datatype } from "../../protocol/datatype.ts";
import { byteSize, datatypes } from "../../protocol/datatype.ts";
import { readJson } from "../../protocol/json-text.ts";
import { tensorFromJson } from "../../protocol/tensor-from-json.ts";
import { jsonElements } from "../../protocol/tensor-to-json.ts";

/** The bytes of JSON text as an input's `data`. */
function bytesOf(datatype: Datatype, json: string, shape?: readonly number[]): Uint8Array {
  return readJson(json, ({ root, exact }) => {
    const data: unknown = root;
    const length = Array.isArray(data) ? data.flat(100).length : 0;
    return tensorFromJson({ datatype, shape: shape ?? [length], data, exact });
  });
}

function textOf(datatype: Datatype, bytes: Uint8Array): string {
  return jsonElements({ name: "OUT", datatype, shape: [], bytes });
}

const echo = (datatype: Datatype, json: string): string =>
  `[${textOf(datatype, bytesOf(datatype, json))}]`;

describe("tensorFromJson", () => {
  it("takes data that is flat or nested", () => {
    const flat = bytesOf("INT32", "[1,2,3,4]", [2, 2]);
    expect(bytesOf("INT32", "[[1,2],[3,4]]", [2, 2])).toEqual(flat);
    expect(bytesOf("INT32", "[[],[[1,2]],3,[4]]", [2, 2])).toEqual(flat);
    expect(bytesOf("FP32", "[]", [0, 7])).toHaveLength(0);
  });

  it("refuses another number of elements than the shape says, whatever it says", () => {
    const mismatch = "Unable to parse 'data': Shape does not match true shape of 'data' field";
    expect(() => bytesOf("FP32", "[1,2,3]", [2])).toThrow(mismatch);
    expect(() => bytesOf("FP32", "[1]", [2 ** 50])).toThrow(mismatch);
    expect(() => bytesOf("FP32", "5", [1])).toThrow("JSON non-array as array");
  });

  it.each([
    ["FP32", '["1"]', "Unable to parse 'data': attempt to access JSON non-number as double"],
    ["FP64", "[null]", "attempt to access JSON non-number as double"],
    ["UINT8", "[-1]", "attempt to access JSON non-unsigned-integer as unsigned-integer"],
    ["UINT64", "[18446744073709551616]", "non-unsigned-integer as unsigned-integer"],
    ["INT8", "[1.5]", "attempt to access JSON non-signed-integer as signed-integer"],
    ["INT64", "[9223372036854775808]", "non-signed-integer as signed-integer"],
    ["INT64", '["1"]', "non-signed-integer as signed-integer"],
    ["BOOL", "[1]", "attempt to access JSON non-boolean as boolean"],
    [
      "BYTES",
      "[5]",
      "Unable to parse JSON bytes array: attempt to access JSON non-string as string",
    ],
    ["BYTES", '["\\ud800"]', "surrogate pair in string is invalid"],
    ["FP64", "[1e400]", "Number too big to be stored in double. at 1"],
  ] as const)("refuses %s data %s", (datatype, json, complaint) => {
    expect(() => bytesOf(datatype, json)).toThrow(complaint);
  });

  it("cuts integers to the size of their datatype, as the reference does", () => {
    expect(echo("UINT8", "[256,300,1]")).toBe("[0,44,1]");
    expect(echo("INT8", "[200,-200]")).toBe("[-56,56]");
    expect(echo("INT16", "[70000,-70000]")).toBe("[4464,-4464]");
    expect(echo("INT32", "[4294967296,2147483648,9223372036854775807]")).toBe("[0,-2147483648,-1]");
    expect(echo("UINT32", "[4294967297]")).toBe("[1]");
  });
});

describe("jsonElements", () => {
  it("prints numbers as the reference does", () => {
    expect(echo("FP64", "[1,-0.0,0.1,1e21,1e20,1e-7,5e-324,-2.5]")).toBe(
      "[1.0,-0.0,0.1,1e21,100000000000000000000.0,1e-7,5e-324,-2.5]",
    );
    expect(echo("FP32", "[0.1,16777217]")).toBe("[0.10000000149011612,16777216.0]");
    expect(echo("FP32", "[0.5,0.25]")).toBe("[0.5,0.25]");
    expect(echo("FP32", "[1e39,NaN,-Infinity]")).toBe("[Infinity,NaN,-Infinity]");
    expect(echo("FP16", "[1,0.1,65520]")).toBe("[1.0,0.0999755859375,Infinity]");
    expect(echo("BF16", "[1,0.1]")).toBe("[1.0,0.10009765625]");
    expect(echo("BOOL", "[true,false]")).toBe("[true,false]");
  });

  it("keeps 64-bit integers exact both ways", () => {
    const signed = "[9007199254740993,-9223372036854775808,9223372036854775807,-1,-4294967297]";
    expect(echo("INT64", signed)).toBe(signed);
    fc.assert(
      fc.property(fc.array(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })), (values) => {
        expect(echo("UINT64", `[${values.join(",")}]`)).toBe(`[${values.join(",")}]`);
      }),
    );
  });

  it("keeps strings, with everything that JSON escapes", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary" })), (values) => {
        expect(JSON.parse(echo("BYTES", JSON.stringify(values)))).toEqual(values);
      }),
    );
  });

  it("refuses a string that is not UTF-8 rather than changing it", () => {
    const bytes = joinBytesElements([Uint8Array.of(97), Uint8Array.of(255)]);
    expect(() => textOf("BYTES", bytes)).toThrow(
      "output 'OUT': element 1 is not valid UTF-8, which JSON cannot carry; ask for it with 'binary_data'",
    );
  });

  it("refuses to write more than the process may have memory for", () => {
    expect(() => textOf("FP32", new Uint8Array(2 ** 26 + 4))).toThrow(
      "output 'OUT': given 67108868 bytes of FP32, expected at most 67108864 in JSON; ask for it with 'binary_data'",
    );
    expect(() => textOf("BYTES", new Uint8Array(2 ** 26 + 4))).toThrow("expected at most 67108864");
    expect(textOf("UINT8", new Uint8Array(2 ** 24))).toHaveLength(2 ** 25 - 1);
  });

  it.each(datatypes.filter((datatype) => datatype !== "BYTES" && datatype !== "BOOL"))(
    "gives back the bytes of any %s tensor, wherever they begin in their buffer",
    (datatype) => {
      const size = byteSize(datatype);
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 64 }), fc.nat(7), (noise, offset) => {
          const whole = noise.subarray(0, noise.length - (noise.length % size));
          const bytes = new Uint8Array([...new Uint8Array(offset), ...whole]).subarray(offset);
          const text = textOf(datatype, bytes);
          fc.pre(!text.includes("NaN"));
          expect(bytesOf(datatype, `[${text}]`)).toEqual(bytes.slice());
        }),
      );
    },
  );
});
