import { onnxModel } from "./onnx-model.ts";

/** A model whose answers tell which file it was made of: it adds a number to its one FP32 input `x`. */
export function addingModel(number: number): Uint8Array {
  const x = { name: "x", datatype: "FP32", shape: [1] } as const;
  const bytes = new Uint8Array(Float32Array.of(number).buffer);
  return onnxModel({
    inputs: [x],
    outputs: [{ ...x, name: "y" }],
    nodes: [{ op: "Add", inputs: ["x", "number"], outputs: ["y"] }],
    initializers: [{ ...x, name: "number", bytes }],
  });
}

/** A request to it whose answer is the number itself. */
export const addingBody = { inputs: [{ name: "x", datatype: "FP32", shape: [1], data: [0] }] };
