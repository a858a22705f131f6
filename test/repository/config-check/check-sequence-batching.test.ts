import { describe, expect, it } from "vitest";
import { checkSequenceBatching } from "../../../repository/config-check/check-sequence-batching.ts";
import { configOf } from "../../fixtures/configs.ts";

function check(text: string): void {
  const { sequenceBatching } = configOf(`sequence_batching { ${text} }`);
  if (!sequenceBatching) throw new Error("expected a sequence batcher");
  checkSequenceBatching(sequenceBatching, 8, "m");
}

function control(fields: string): string {
  return `control_input { name: "S" control { ${fields} } }`;
}

function state(fields: string): string {
  return `state { input_name: "a" output_name: "b" data_type: TYPE_FP32 dims: 1 initial_state { ${fields} } }`;
}

const start = "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ]";

// What the reference says to the same config, where no comment tells otherwise.
describe("checkSequenceBatching", () => {
  it.each([
    "",
    "oldest {}",
    "direct {}",
    "control_input { name: 'S' }",
    "state {}",
    control(start),
  ])("passes %j", (text) => {
    expect(() => check(text)).not.toThrow();
  });

  it.each([
    [
      "direct { minimum_slot_utilization: 1.5 }",
      "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m",
    ],
    [
      "direct { minimum_slot_utilization: nan }",
      "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m",
    ],
    [
      "oldest { preferred_batch_size: 9 }",
      "sequence batching preferred batch size must be <= max batch size for m",
    ],
    [
      "oldest { preferred_batch_size: 0 }",
      "sequence batching preferred batch size must be positive for m",
    ],
  ])("refuses %j", (text, message) => {
    expect(() => check(text)).toThrow(message);
  });

  it.each([
    [
      `control_input { control { ${start} } }`,
      "sequence batching control tensor must have a name for m",
    ],
    [
      control("kind: CONTROL_SEQUENCE_END"),
      "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_END for m",
    ],
    [
      control("int32_false_true: 0"),
      "sequence batching control 'int32_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_START for m",
    ],
    [
      control("bool_false_true: [ true, true, true ]"),
      "sequence batching control 'bool_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_START for m",
    ],
    [
      control(`${start} fp32_false_true: [ 0, 1 ]`),
      "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' for CONTROL_SEQUENCE_START for m",
    ],
    [
      `${control(start)} control_input { name: "T" control { ${start} } }`,
      "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors for m",
    ],
    [
      `${control(start)} ${control("kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ]")}`,
      "sequence batching control tensor 'S' is specified for multiple control kinds for m",
    ],
    [
      control("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32"),
      "unexpected data type for control CONTROL_SEQUENCE_CORRID for m. Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING",
    ],
    [
      control("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32 int32_false_true: [ 0, 1 ]"),
      "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_CORRID for m",
    ],
  ])("refuses the control %j", (text, message) => {
    expect(() => check(text)).toThrow(message);
  });

  it.each([
    [
      state("zero_data: true dims: 1 data_type: TYPE_INT32"),
      "The data type used for 'initial_state' field of state 'a' does not match the state data type.",
    ],
    [
      state("zero_data: true dims: 2 data_type: TYPE_FP32"),
      "'initial_state' dim for input name 'a' doesn't match 'state' dim description. 2 != 1",
    ],
    [
      state("zero_data: true dims: -1 data_type: TYPE_FP32"),
      "'initial_state' field for state input name 'a' contains variable dimensions.",
    ],
    // Our own text: the reference reads beyond the shorter list.
    [
      state("zero_data: true data_type: TYPE_FP32"),
      "'initial_state' field for state input name 'a' has 0 dimensions, expected 1",
    ],
    [
      state("dims: 1 data_type: TYPE_FP32"),
      "initial_state setting expects state 'a' to have state_data set",
    ],
  ])("refuses %j", (text, message) => {
    expect(() => check(text)).toThrow(message);
  });
});
