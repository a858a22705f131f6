import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeStrings } from "../../../pool/backend/string-elements.ts";
import { scatterOutput } from "../../../pool/scheduler/scatter-output.ts";
import { elementCount } from "../../../protocol/shape.ts";
import type { Tensor } from "../../../protocol/tensor.ts";

function bytesOf(values: readonly number[]): Uint8Array {
  return new Uint8Array(Float32Array.from(values).buffer);
}

const size = fc.nat({ max: 3 });
const given = fc.array(fc.tuple(fc.integer({ min: 1, max: 3 }), size, size), { minLength: 1 });

describe("scatterOutput", () => {
  it("gives each request as many elements, in its own shape, as its input had", () => {
    fc.assert(
      fc.property(given, (shapes) => {
        const counts = shapes.map(elementCount);
        let next = 0;
        const pieces = counts.map((count) => Array.from({ length: count }, () => next++));
        const values = pieces.flat();
        const output: Tensor = {
          name: "Y",
          datatype: "FP32",
          shape: [values.length],
          bytes: bytesOf(values),
        };
        const found = scatterOutput(output, [-1, -1, -1], shapes);
        expect(found?.map(({ shape }) => shape)).toEqual(shapes);
        expect(found?.map(({ bytes }) => Buffer.from(bytes))).toEqual(
          pieces.map((piece) => Buffer.from(bytesOf(piece))),
        );
      }),
    );
  });

  it("takes the dimensions that the config fixes from there", () => {
    const output: Tensor = {
      name: "Y",
      datatype: "BYTES",
      shape: [6],
      bytes: encodeStrings(["a", "bb", "c", "", "e", "f"]),
    };
    const twoRequests = [
      [1, 9],
      [2, 7],
    ];
    const found = scatterOutput(output, [-1, 2], twoRequests);
    expect(found?.map(({ shape, bytes }) => [shape, bytes])).toEqual([
      [[1, 2], encodeStrings(["a", "bb"])],
      [[2, 2], encodeStrings(["c", "", "e", "f"])],
    ]);
  });

  it("gives nothing when the output has more or fewer elements than its requests", () => {
    const output: Tensor = { name: "Y", datatype: "FP32", shape: [3], bytes: bytesOf([1, 2, 3]) };
    expect(scatterOutput(output, [-1, -1], [[1, 2]])).toBeUndefined();
    expect(scatterOutput(output, [-1, -1], [[2, 2]])).toBeUndefined();
  });
});
