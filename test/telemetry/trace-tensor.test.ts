import { describe, expect, it } from "vitest";
import type { Datatype } from "../../protocol/datatype.ts";
import { traceElements } from "../../telemetry/trace-tensor.ts";

function elements(datatype: Datatype, values: ArrayBufferView): string {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return traceElements({ name: "x", datatype, shape: [1], bytes });
}

describe("traceElements", () => {
  // What the reference wrote for the same numbers.
  it.each([
    ["FP64", Float64Array.of(1 / 3, 1e30, 1e-7, 123_456_789, NaN, -Infinity, 1e6, 1e5, 1_234_567)],
    ["FP32", Float32Array.of(1 / 3, 1e30, 1e-7, 123_456_789, NaN, -Infinity, 1e6, 1e5, 1_234_567)],
  ] as const)("prints %s as C++ streams do", (datatype, values) => {
    expect(elements(datatype, values)).toBe(
      "0.333333,1e+30,1e-07,1.23457e+08,nan,-inf,1e+06,100000,1.23457e+06",
    );
  });

  it("prints small numbers as C++ streams do", () => {
    expect(elements("FP32", Float32Array.of(0.0001, 0.00001, -0.5, 0, 2))).toBe(
      "0.0001,1e-05,-0.5,0,2",
    );
  });

  it("prints integers exactly, and booleans as 0 and 1", () => {
    expect(elements("INT64", BigInt64Array.of(2n ** 62n, -3n))).toBe("4611686018427387904,-3");
    expect(elements("UINT8", Uint8Array.of(1, 65, 200))).toBe("1,65,200");
    expect(elements("BOOL", Uint8Array.of(1, 0))).toBe("1,0");
    expect(elements("FP16", Uint16Array.of(0x3c00, 0x4000))).toBe("1,2");
    expect(elements("BF16", Uint16Array.of(0x3f80))).toBe("1");
  });

  it("prints strings in quotes, also those that are not UTF-8", () => {
    const bytes = Uint8Array.of(3, 0, 0, 0, 97, 34, 98, 1, 0, 0, 0, 255);
    expect(elements("BYTES", bytes)).toBe('"a\\"b","\uFFFD"');
  });

  it("prints nothing for a tensor without elements", () => {
    expect(elements("FP32", new Float32Array(0))).toBe("");
    expect(elements("BYTES", new Uint8Array(0))).toBe("");
  });
});
