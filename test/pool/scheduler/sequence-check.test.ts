import { describe, expect, it } from "vitest";
import { checkSequenceTensors } from "../../../pool/scheduler/sequence-check.ts";
import type { Datatype } from "../../../protocol/datatype.ts";
import type { TensorMetadata } from "../../../protocol/metadata.ts";
import { parseConfigPbtxt } from "../../../repository/config-pbtxt.ts";

const config = {
  ...parseConfigPbtxt(
    `max_batch_size: 4
     sequence_batching {
       control_input [ { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ]
       state [ { input_name: "IN" output_name: "OUT" data_type: TYPE_INT32 dims: [ -1, 2 ] } ]
     }`,
    "config.pbtxt",
  ),
  name: "m",
};

type Typed = readonly [Datatype, ...number[]];

interface Given {
  readonly start?: Typed;
  readonly input?: Typed;
  readonly output?: Typed;
}

const tensor = (name: string, [datatype, ...shape]: Typed): TensorMetadata => ({
  name,
  datatype,
  shape,
});

function check({
  start = ["FP32", -1, 1],
  input = ["INT32", -1, 3, 2],
  output = ["INT32", -1, -1, 2],
}: Given): void {
  const inputs = [tensor("START", start), tensor("IN", input)];
  const outputs = [tensor("OUT", output)];
  checkSequenceTensors(config, { inputs, outputs, loadMilliseconds: 0, peakBytes: 0 });
}

describe("checkSequenceTensors", () => {
  it("accepts a graph that fits, also where one side leaves a dimension open", () => {
    expect(() => check({})).not.toThrow();
  });

  it.each<[Given, string]>([
    [
      { start: ["FP32", -1, 2] },
      "unable to load model 'm', sequence control 'START' in model has dims [2] but dims [1] is expected",
    ],
    [
      { start: ["FP64", -1, 1] },
      "unable to load model 'm', sequence control 'START', the model expects data-type DOUBLE but the model " +
        "configuration specifies data-type TYPE_FP32",
    ],
    [
      { input: ["BYTES", -1, 3, 2] },
      "unable to load model 'm', configuration expects datatype TYPE_INT32 for input state 'IN', model provides TYPE_STRING",
    ],
    [
      { output: ["INT64", -1, 3, 2] },
      "unable to load model 'm', configuration expects datatype TYPE_INT32 for output state 'OUT', model provides TYPE_INT64",
    ],
    [
      { output: ["INT32", -1, 3, 3] },
      "unable to load model 'm', configuration expects shape [-1,-1,2] for output state 'OUT', model provides [-1,3,3]",
    ],
  ])("refuses %j", (given, message) => {
    expect(() => check(given)).toThrow(message);
  });
});
