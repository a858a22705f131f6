import { describe, expect, it } from "vitest";
import { configToJson, parseConfigJson } from "../../repository/config-json.ts";
import { inferBackend, normaliseConfig } from "../../repository/complete-config.ts";
import { configNames, configOf, configText } from "../fixtures/configs.ts";

describe("configToJson", () => {
  // What the reference answers for this config, text for text.
  it("prints what the reference prints, in its order", () => {
    const given = configOf(`
      backend: "python" max_batch_size: 8
      input { name: "x" data_type: TYPE_FP32 dims: [4] }
      output { name: "y" data_type: TYPE_FP32 dims: [4] }
      sequence_batching {
        direct { minimum_slot_utilization: 0.3 }
        control_input { name: "START" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1.1] } }
        state { input_name: "si" output_name: "so" data_type: TYPE_FP32 dims: [1] }
      }`);
    const config = normaliseConfig(inferBackend(given, "m", []), { gpuCount: 0 });
    expect(JSON.stringify(configToJson(config))).toBe(
      `{"name":"m","platform":"","backend":"python","runtime":"","version_policy":{"latest":{"num_versions":1}},"max_batch_size":8,` +
        `"input":[{"name":"x","data_type":"TYPE_FP32","format":"FORMAT_NONE","dims":[4],"is_shape_tensor":false,"allow_ragged_batch":false,"optional":false,"is_non_linear_format_io":false}],` +
        `"output":[{"name":"y","data_type":"TYPE_FP32","dims":[4],"label_filename":"","is_shape_tensor":false,"is_non_linear_format_io":false}],` +
        `"batch_input":[],"batch_output":[],"optimization":{"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"enable":true},"output_pinned_memory":{"enable":true},"gather_kernel_buffer_threshold":0,"eager_batching":false},` +
        `"sequence_batching":{"direct":{"max_queue_delay_microseconds":0,"minimum_slot_utilization":0.3},"max_sequence_idle_microseconds":1000000,` +
        `"control_input":[{"name":"START","control":[{"kind":"CONTROL_SEQUENCE_START","int32_false_true":[],"fp32_false_true":[0,1.1],"bool_false_true":[],"data_type":"TYPE_INVALID"}]}],` +
        `"state":[{"input_name":"si","output_name":"so","data_type":"TYPE_FP32","dims":[1],"initial_state":[],"use_same_buffer_for_input_output":false,"use_growable_memory":false}],"iterative_sequence":false},` +
        `"instance_group":[{"name":"m","kind":"KIND_CPU","count":1,"gpus":[],"secondary_devices":[],"profile":[],"passive":false,"host_policy":""}],` +
        `"default_model_filename":"model.py","cc_model_filenames":{},"metric_tags":{},"parameters":{},"model_warmup":[]}`,
    );
  });

  it("prints map keys as they are", () => {
    const config = configOf("parameters { key: 'someKey' value { string_value: 'v' } }");
    expect(configToJson(config)).toHaveProperty("parameters", { someKey: { string_value: "v" } });
  });
});

describe("parseConfigJson", () => {
  it.each(configNames)("reads back the JSON of %s", (name) => {
    const config = configOf(configText(name));
    expect(parseConfigJson(JSON.stringify(configToJson(config)))).toEqual(config);
  });

  it("reads camelCase, quoted numbers, enum numbers and null", () => {
    const config = parseConfigJson(
      `{"maxBatchSize": "4", "runtime": null, "input": [{"name": "x", "dataType": 11, "dims": ["4", 2.0, 1e1]}],
        "dynamic_batching": {"priorityQueuePolicy": {"1": {"max_queue_size": 3}}},
        "modelTransactionPolicy": {"decoupled": "true"}}`,
    );
    expect(config).toEqual(
      configOf(`max_batch_size: 4 input { name: "x" data_type: TYPE_FP32 dims: [4, 2, 10] }
        dynamic_batching { priority_queue_policy { key: 1 value { max_queue_size: 3 } } }
        model_transaction_policy { decoupled: true }`),
    );
  });

  it("takes the largest 64-bit number, which JSON rounds up beyond it", () => {
    const config = parseConfigJson(
      `{"sequence_batching": {"max_sequence_idle_microseconds": 18446744073709551615}}`,
    );
    expect(config.sequenceBatching?.maxSequenceIdleMicroseconds).toBe(2 ** 53 - 1);
  });

  it("takes a single value for a list of one, and the last of two spellings, as the reference does", () => {
    const config = parseConfigJson(
      `{"input": {"name": "x", "dims": 4}, "max_batch_size": 1, "maxBatchSize": 2}`,
    );
    expect(config.input[0]?.dims).toEqual([4]);
    expect(config.maxBatchSize).toBe(2);
  });

  it.each([
    ["", "Unexpected end of JSON input"],
    ["[]", "Root element must be a message."],
    ["null", "Root element must be a message."],
    [
      `{"input": [{"dim": 1}]}`,
      "input[0].dim: model input has no field 'dim'; did you mean 'dims'?",
    ],
    [
      `{"max_batch_size": "eight"}`,
      `max_batch_size: field 'max_batch_size' expects an integer, got "eight"`,
    ],
    [`{"max_batch_size": 4.5}`, "field 'max_batch_size' expects an integer, got 4.5"],
    [`{"max_batch_size": 1e300}`, "field 'max_batch_size' expects an integer, got 1000000"],
    [
      `{"input": [{"format": "NHWC"}]}`,
      `input[0].format: field 'format' expects one of FORMAT_NONE, FORMAT_NHWC, FORMAT_NCHW, got "NHWC"`,
    ],
    [`{"backend": 5}`, "field 'backend' expects a string in quotes, got 5"],
    [
      `{"dynamic_batching": {}, "sequence_batching": {}}`,
      "'sequence_batching' is given together with 'dynamic_batching'",
    ],
    [
      `{"parameters": {"a": 1}}`,
      "parameters.a: field 'parameters' expects a message in braces, got 1",
    ],
    [`{"version_policy": []}`, "field 'version_policy' expects a message in braces, got a list"],
    [`{"x":`.repeat(50) + "1" + "}".repeat(50), "values nest deeper than 32"],
  ])("refuses %j", (text, message) => {
    expect(() => parseConfigJson(text)).toThrow(
      expect.objectContaining({ code: "INVALID_ARG", message: expect.stringContaining(message) }),
    );
    expect(() => parseConfigJson(text)).toThrow(/^Invalid config override: /);
  });

  it("refuses a text that is too long before it looks at it", () => {
    expect(() => parseConfigJson(" ".repeat((1 << 20) + 1))).toThrow("at most 1048576 are read");
  });
});
