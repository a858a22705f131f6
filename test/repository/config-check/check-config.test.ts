import { describe, expect, it } from "vitest";
import { checkConfig } from "../../../repository/config-check/check-config.ts";
import { inferBackend, normaliseConfig } from "../../../repository/complete-config.ts";
import { configNames, configOf, configText } from "../../fixtures/configs.ts";

const X = "input { name: 'x' data_type: TYPE_FP32 dims: 4 } ";
const Y = "output { name: 'y' data_type: TYPE_FP32 dims: 4 } ";
const model = `backend: 'python' max_batch_size: 8 ${X}${Y}`;

function check(text: string): void {
  checkConfig(configOf(text), "m");
}

function input(fields: string): string {
  return `backend: 'python' max_batch_size: 8 ${Y} input { name: 'x' data_type: TYPE_FP32 ${fields} }`;
}

describe("checkConfig", () => {
  it.each(configNames)("passes %s, as it is written and as it is served", (name) => {
    const config = inferBackend(configOf(configText(name)), name, []);
    const normalised = normaliseConfig(config, { gpuCount: 1 });
    expect(() => checkConfig(config, name)).not.toThrow();
    expect(() => checkConfig(normalised, name)).not.toThrow();
  });

  // All texts are what the reference says to the same config, where no comment tells otherwise.
  it.each([
    ["", "must specify 'platform' or 'backend' for 'm'"],
    ["platform: 'abacus'", "unexpected platform type 'abacus' for m"],
    ["backend: 'python' max_batch_size: -1", "'max_batch_size' must be non-negative value for m"],
    [
      `${model} response_cache { enable: true } sequence_batching {}`,
      "Response Cache does not currently support model m with sequence batching scheduler. Please disable the response cache.",
    ],
    [
      `${model} response_cache { enable: true } model_transaction_policy { decoupled: true }`,
      "Response Cache does not currently support model m with 'decoupled' transaction policy. Please disable the response cache.",
    ],
    [
      `${model} instance_group { kind: KIND_CPU gpus: 0 }`,
      "instance group m_0 of model m has kind KIND_CPU but specifies one or more GPUs",
    ],
    [
      `${model} instance_group { name: "g" kind: KIND_MODEL gpus: 0 }`,
      "instance group g of model m has kind KIND_MODEL but specifies one or more GPUs",
    ],
    [
      `${model} instance_group { profile: "p" }`,
      "instance group m_0 of model m and platform  specifies profile field which is only supported for TensorRT models",
    ],
  ])("refuses %j", (text, message) => {
    expect(() => check(text)).toThrow(expect.objectContaining({ code: "INVALID_ARG", message }));
  });

  it.each([
    ["input { data_type: TYPE_FP32 dims: 1 }", "model input must specify 'name' for m"],
    ["input { name: 'x' dims: 1 }", "model input 'x' must specify 'data_type' for m"],
    ["input { name: 'x' data_type: TYPE_FP32 }", "model input 'x' must specify 'dims' for m"],
    ["output { data_type: TYPE_FP32 dims: 1 }", "model output must specify 'name' for m"],
    [
      "output { name: 'y' data_type: TYPE_FP32 dims: -2 }",
      "model output 'y' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m",
    ],
    [
      "input { name: 'x' data_type: TYPE_FP32 dims: 0 }",
      "model input 'x' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m",
    ],
    [
      "input { name: 'x' data_type: TYPE_FP32 dims: [ 4, 4 ] format: FORMAT_NCHW }",
      "model input NHWC/NCHW require 3 dims for m",
    ],
    [
      "input { name: 'x' data_type: TYPE_INT32 dims: 4 is_shape_tensor: true }",
      "shape tensors are only supported for TensorRT platform for m",
    ],
    [
      "input { name: 'x' data_type: TYPE_FP32 dims: 1 reshape {} }",
      "model input 'x' cannot have empty reshape for non-batching model as scalar tensors are not supported for m",
    ],
    [
      "input { name: 'x' data_type: TYPE_FP32 dims: 4 reshape { shape: 0 } }",
      "model input 'x' reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension for m",
    ],
  ])("refuses the tensor %j", (text, message) => {
    expect(() => check(`backend: 'python' ${text}`)).toThrow(
      expect.objectContaining({ code: "INVALID_ARG", message }),
    );
  });

  it.each([
    ["[ 4 ]", "[ 3 ]"],
    ["[ 4 ]", "[ ]"],
    ["[ -1 ]", "[ 3 ]"],
    ["[ 2, -1 ]", "[ -1, 3 ]"],
    ["[ -1, 2 ]", "[ 2, -1 ]"],
  ])("refuses dims %s with reshape %s", (dims, shape) => {
    expect(() => check(input(`dims: ${dims} reshape { shape: ${shape} }`))).toThrow(
      "model input 'x' has different size for dims and reshape for m",
    );
  });

  it.each([
    ["[ 1 ]", "[ ]"],
    ["[ 2, -1 ]", "[ 2, -1, 1 ]"],
    ["[ 2, 3, -1, 4 ]", "[ 6, -1, 2, 2 ]"],
  ])("passes dims %s with reshape %s", (dims, shape) => {
    const text = input(`dims: ${dims} reshape { shape: ${shape} }`);
    expect(() => check(text)).not.toThrow();
  });

  it.each([
    [
      "batch_input { data_type: TYPE_FP32 target_name: 'b' source_input: 'z' }",
      "unknown source input name 'z' for m",
    ],
    [
      "batch_input { data_type: TYPE_FP32 target_name: 'b' }",
      "batch input kind 'BATCH_ELEMENT_COUNT' expects 1 source input, got 0 for m",
    ],
    [
      "batch_input { data_type: TYPE_INT64 target_name: 'b' source_input: 'x' }",
      "batch input data type must be TYPE_INT32 or TYPE_FP32 for m",
    ],
    ["batch_output { target_name: 'z' source_input: 'x' }", "unknown target output name 'z' for m"],
    [
      "batch_output { target_name: ['y', 'y'] source_input: 'x' }",
      "target output name 'y' can only be specified once for m",
    ],
    [
      "batch_output { target_name: 'y' }",
      "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 0 for m",
    ],
    // The reference ends its process on this one.
    [
      "batch_output { source_input: 'x' }",
      "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects a target name, got none for m",
    ],
  ])("refuses %j", (text, message) => {
    expect(() => check(`${model} ${text}`)).toThrow(message);
  });

  it.each([
    ["preferred_batch_size: 9", "dynamic batching preferred size must be <= max batch size for m"],
    ["preferred_batch_size: 0", "dynamic batching preferred size must be positive for m"],
    ["priority_levels: 3", "default priority level must be in range [1, 3] for m"],
    [
      "priority_levels: 3 default_priority_level: 4",
      "default priority level must be in range [1, 3] for m",
    ],
    [
      "priority_levels: 3 default_priority_level: 1 priority_queue_policy { key: 5 }",
      "priority queue policy must have priority level in range [1, 3] for m",
    ],
    [
      "preserve_ordering: true priority_levels: 2 default_priority_level: 1",
      "Only one priority level is allowed when 'preserve_ordering' is true for m",
    ],
    [
      "preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1 }",
      "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m",
    ],
    [
      "preserve_ordering: true priority_levels: 1 default_priority_level: 1 " +
        "priority_queue_policy { key: 1 value { timeout_action: DELAY default_timeout_microseconds: 1 } }",
      "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m",
    ],
  ])("refuses a dynamic batcher with %s", (text, message) => {
    expect(() => check(`${model} dynamic_batching { ${text} }`)).toThrow(message);
  });
});
