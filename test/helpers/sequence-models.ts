import { identityModel, onnxModel, type OnnxTensor } from "./onnx-model.ts";

const value: OnnxTensor = { name: "IN", datatype: "FP32", shape: ["n", 1] };

/** A model that shows what its control inputs say, and its value. */
export function controlsModel(): Uint8Array {
  return identityModel(
    [value, "OUT"],
    [{ name: "START", datatype: "INT32", shape: ["n", 1] }, "STARTED"],
    [{ name: "END", datatype: "FP32", shape: ["n", 1] }, "ENDED"],
    [{ name: "READY", datatype: "BOOL", shape: ["n", 1] }, "WAS_READY"],
    [{ name: "CORRID", datatype: "INT64", shape: ["n", 1] }, "ID"],
  );
}

/** Its settings; without inputs and outputs, which the graph has. */
export const controlsConfig = `
max_batch_size: 4
instance_group [{ count: 1 }]
sequence_batching {
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 7 ] } ] },
    { name: "END" control [ { kind: CONTROL_SEQUENCE_END fp32_false_true: [ -1, 1 ] } ] },
    { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] } ] },
    { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64 } ] }
  ]
}`;

/** A model that shows correlation ids which are texts. */
export function namedModel(): Uint8Array {
  return identityModel(
    [value, "OUT"],
    [{ name: "CORRID", datatype: "BYTES", shape: ["n", 1] }, "ID"],
  );
}

export const namedConfig = `
max_batch_size: 4
sequence_batching {
  control_input [ { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } ] } ]
}`;

/** A model that adds up the values of a sequence, if somebody keeps the sum for it. */
export function sumModel(): Uint8Array {
  return onnxModel({
    inputs: [value, { ...value, name: "SUM_IN" }],
    outputs: [
      { ...value, name: "SUM_OUT" },
      { ...value, name: "OUT" },
    ],
    nodes: [
      { op: "Add", inputs: ["IN", "SUM_IN"], outputs: ["SUM_OUT"] },
      { op: "Identity", inputs: ["SUM_OUT"], outputs: ["OUT"] },
    ],
  });
}

/** Its settings. */
export function sumConfig(strategy: string, initialState = ""): string {
  return `
max_batch_size: 4
instance_group [{ count: 2 }]
sequence_batching {
  ${strategy}
  max_sequence_idle_microseconds: 60000000
  state [ { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_FP32 dims: [ 1 ] ${initialState} } ]
}`;
}
