import { onnxModel } from "./onnx-model.ts";

/** A graph that gives "y", which is "x" times a number, for rows of two. */
export function timesModel(factor: number): Uint8Array {
  const tensor = { datatype: "FP32", shape: ["n", 2] } as const;
  const bytes = new Uint8Array(Float32Array.of(factor).buffer);
  return onnxModel({
    inputs: [{ name: "x", ...tensor }],
    outputs: [{ name: "y", ...tensor }],
    nodes: [{ op: "Mul", inputs: ["x", "factor"], outputs: ["y"] }],
    initializers: [{ name: "factor", datatype: "FP32", shape: [1], bytes }],
  });
}

/** A request for it. */
export function rowOf(...data: readonly number[]): object {
  return { inputs: [{ name: "x", datatype: "FP32", shape: [1, 2], data }] };
}
