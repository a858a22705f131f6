import { describe, expect, it } from "vitest";
import {
  controlInputs,
  controlTensor,
  type SequenceSignals,
} from "../../../pool/scheduler/sequence-controls.ts";
import { parseConfigPbtxt } from "../../../repository/config-pbtxt.ts";
import { noSequenceBatching } from "./sequence-stand.ts";

const quiet: SequenceSignals = { start: false, end: false, ready: true, id: 7n };

/** The tensors of the controls that a config text lists, for one row. */
function tensorsOf(controls: string, signals: SequenceSignals, isBatched = true): unknown[] {
  const text = `sequence_batching { control_input [ ${controls} ] }`;
  const batching = parseConfigPbtxt(text, "config.pbtxt").sequenceBatching ?? noSequenceBatching;
  return controlInputs(batching, isBatched).map((input) => {
    const { datatype, shape, bytes } = controlTensor(input, signals);
    return [datatype, shape, Buffer.from(bytes).toString("hex")];
  });
}

describe("controlTensor", () => {
  it.each([
    ["int32_false_true: [ 2, 258 ]", "INT32", "02000000", "02010000"],
    ["fp32_false_true: [ -1, 1 ]", "FP32", "000080bf", "0000803f"],
    ["bool_false_true: [ false, true ]", "BOOL", "00", "01"],
  ])("tells START, END and READY as %s", (values, datatype, no, yes) => {
    for (const [kind, signals] of [
      ["START", { ...quiet, ready: false, start: true }],
      ["END", { ...quiet, ready: false, end: true }],
      ["READY", quiet],
    ] as const) {
      const controls = ["START", "END", "READY"].map(
        (one) => `{ name: "${one}" control [ { kind: CONTROL_SEQUENCE_${one} ${values} } ] }`,
      );
      const expected = ["START", "END", "READY"].map((one) => [
        datatype,
        [1, 1],
        one === kind ? yes : no,
      ]);
      expect(tensorsOf(controls.join(","), signals)).toEqual(expected);
    }
  });

  it.each([
    ["TYPE_UINT64", 2n ** 64n - 2n, "UINT64", "feffffffffffffff"],
    ["TYPE_INT64", 258n, "INT64", "0201000000000000"],
    ["TYPE_UINT32", 2n ** 32n + 1n, "UINT32", "01000000"],
    ["TYPE_INT32", 258n, "INT32", "02010000"],
    ["TYPE_STRING", "é", "BYTES", "02000000c3a9"],
    ["TYPE_STRING", 0n, "BYTES", "00000000"],
  ])("tells CORRID as %s %s", (type, id, datatype, hex) => {
    const control = `{ name: "C" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: ${type} } ] }`;
    expect(tensorsOf(control, { ...quiet, id })).toEqual([[datatype, [1, 1], hex]]);
  });

  it("has no batch dimension where the model has none", () => {
    const control = `{ name: "C" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32 } ] }`;
    expect(tensorsOf(control, quiet, false)).toEqual([["INT32", [1], "07000000"]]);
  });
});
