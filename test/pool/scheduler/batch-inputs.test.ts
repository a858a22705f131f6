import { describe, expect, it } from "vitest";
import { batchInputs } from "../../../pool/scheduler/batch-inputs.ts";
import type { BatchInput } from "../../../protocol/model-config.ts";

/** Of three requests: one item of 3, two of 2 × 2, one that is empty. */
const shapes = {
  VECTOR: [
    [1, 3],
    [2, 4],
    [1, 0],
  ],
  MATRIX: [
    [1, 3, 1],
    [2, 2, 2],
    [1, 0, 5],
  ],
};

function made(kind: BatchInput["kind"], source: keyof typeof shapes, dataType = "TYPE_INT32") {
  const stated = { kind, targetName: ["T"], dataType, sourceInput: [source] };
  const [tensor] = batchInputs([stated], () => shapes[source]);
  const { buffer } = tensor?.parts[0] ?? new Uint8Array();
  const values = dataType === "TYPE_FP32" ? new Float32Array(buffer) : new Int32Array(buffer);
  return { shape: tensor?.shape, datatype: tensor?.datatype, values: [...values] };
}

describe("batchInputs", () => {
  it.each<[BatchInput["kind"], keyof typeof shapes, number[], number[]]>([
    ["BATCH_ELEMENT_COUNT", "VECTOR", [3], [3, 8, 0]],
    ["BATCH_ACCUMULATED_ELEMENT_COUNT", "VECTOR", [3], [3, 11, 11]],
    ["BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", "MATRIX", [4], [0, 3, 11, 11]],
    ["BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", "VECTOR", [8], [0, 0, 0, 0, 0, 0, 0, 0]],
    ["BATCH_ITEM_SHAPE", "VECTOR", [4, 1], [3, 4, 4, 0]],
    ["BATCH_ITEM_SHAPE", "MATRIX", [4, 2], [3, 1, 2, 2, 2, 2, 0, 5]],
    ["BATCH_ITEM_SHAPE_FLATTEN", "MATRIX", [8], [3, 1, 2, 2, 2, 2, 0, 5]],
  ])("makes %s of %s", (kind, source, shape, values) => {
    expect(made(kind, source)).toEqual({ shape, datatype: "INT32", values });
    expect(made(kind, source, "TYPE_FP32")).toEqual({ shape, datatype: "FP32", values });
  });

  it("fills every target", () => {
    const tensors = batchInputs(
      [
        {
          kind: "BATCH_ELEMENT_COUNT",
          targetName: ["A", "B"],
          dataType: "TYPE_INT32",
          sourceInput: ["VECTOR"],
        },
      ],
      () => shapes.VECTOR,
    );
    expect(tensors.map(({ name }) => name)).toEqual(["A", "B"]);
  });
});
