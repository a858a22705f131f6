import { onnxModel, type OnnxTensor } from "./onnx-model.ts";

/**
 * A model that gives its input back after as many turns of a loop as its largest element says, so that a test can keep
 * an instance busy: a million turns take a second or two.
 *
 * @param batching its first dimension is a batch
 */
export function busyModel(batching = false): Uint8Array {
  const shape = batching ? ["batch", 1] : [1];
  const x = { name: "x", datatype: "INT64", shape } as const;
  return onnxModel({
    inputs: [x],
    outputs: [{ ...x, name: "y" }],
    nodes: [
      { op: "ReduceMax", inputs: ["x"], outputs: ["turns"], attributes: { keepdims: 0 } },
      {
        op: "Loop",
        inputs: ["turns", "", "x"],
        outputs: ["y"],
        attributes: {
          body: {
            inputs: [scalar("turn", "INT64"), scalar("before", "BOOL"), { ...x, name: "in" }],
            outputs: [scalar("after", "BOOL"), { ...x, name: "out" }],
            nodes: [
              { op: "Identity", inputs: ["before"], outputs: ["after"] },
              { op: "Identity", inputs: ["in"], outputs: ["out"] },
            ],
          },
        },
      },
    ],
  });
}

/** The body of a request that keeps an instance of the model busy; `items` of them for a batching model. */
export function busyBody(turns: number, items?: number): object {
  const shape = items === undefined ? [1] : [items, 1];
  const data = Array.from({ length: items ?? 1 }, () => turns);
  return { inputs: [{ name: "x", datatype: "INT64", shape, data }] };
}

/** The same as a message. */
export function busyMessage(modelName: string, turns: number, items?: number): object {
  const data = new BigInt64Array(items ?? 1).fill(BigInt(turns));
  const inputs = [{ name: "x", datatype: "INT64", shape: items === undefined ? [1] : [items, 1] }];
  return { modelName, inputs, rawInputContents: [Buffer.from(data.buffer)] };
}

function scalar(name: string, datatype: "INT64" | "BOOL"): OnnxTensor {
  return { name, datatype, shape: [] };
}
