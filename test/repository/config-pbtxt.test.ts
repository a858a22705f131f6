import { assert, property } from "fast-check";
import type protobuf from "protobufjs";
import textformat from "protobufjs/ext/textformat.js";
import { describe, expect, it } from "vitest";
import { parseConfigPbtxt } from "../../repository/config-pbtxt.ts";
import { messages } from "../../repository/proto-files.ts";
import { configNames, configOf, configText } from "../fixtures/configs.ts";
import { randomMessage } from "../fixtures/random-message.ts";

const modelConfig = messages().type("ModelConfig");

describe("parseConfigPbtxt", () => {
  it("fills in the defaults and leaves out the messages that are not there", () => {
    expect(configOf('backend: "python"')).toEqual({
      name: "",
      platform: "",
      backend: "python",
      runtime: "",
      maxBatchSize: 0,
      input: [],
      output: [],
      batchInput: [],
      batchOutput: [],
      instanceGroup: [],
      defaultModelFilename: "",
      ccModelFilenames: {},
      metricTags: {},
      parameters: {},
      modelWarmup: [],
    });
  });

  it("reads an input with its enum names and dims as numbers", () => {
    expect(configOf("input { name: 'x' data_type: TYPE_FP32 dims: [ -1, 3 ] }").input).toEqual([
      {
        name: "x",
        dataType: "TYPE_FP32",
        format: "FORMAT_NONE",
        dims: [-1, 3],
        isShapeTensor: false,
        allowRaggedBatch: false,
        optional: false,
        isNonLinearFormatIo: false,
      },
    ]);
  });

  it.each([
    ["a list", "input: [ { name: 'a' }, { name: 'b' } ]"],
    ["a list without a colon", "input [ { name: 'a' }, { name: 'b' } ]"],
    ["repeated blocks", "input { name: 'a' } input: { name: 'b' }"],
    ["angle brackets", "input < name: 'a' > input: < name: 'b' >"],
    ["commas and semicolons", "input { name: 'a', }; input { name: 'b'; },"],
    ["comments", "# two\ninput { name: 'a' } # first\n input { # second\n name: 'b' }"],
    ["no space at all", `input{name:"a"}input{name:"b"}`],
    ["adjacent strings", `input { name: "" 'a' } input { name: "b"\n"" }`],
  ])("reads a repeated message written as %s", (_, text) => {
    expect(configOf(text).input.map(({ name }) => name)).toEqual(["a", "b"]);
  });

  it("reads maps, whose last entry for a key counts", () => {
    const text =
      "metric_tags { key: 'a' value: '1' } metric_tags [ { key: 'b', value: '2' }, { value: '3' key: 'a' } ]";
    expect(configOf(text).metricTags).toEqual({ a: "3", b: "2" });
  });

  it("keeps a map key that objects give a meaning of their own", () => {
    const { metricTags } = configOf("metric_tags { key: '__proto__' value: 'x' }");
    expect(Object.entries(metricTags)).toEqual([["__proto__", "x"]]);
  });

  it("reads a map entry without a value as the default", () => {
    expect(configOf("parameters { key: 'a' }").parameters).toEqual({ a: { stringValue: "" } });
  });

  it.each([
    ["0x10", 16],
    ["010", 8],
    ["- 3", -3],
    ["2147483647", 2_147_483_647],
  ])("reads the integer %s", (written, value) => {
    expect(configOf(`max_batch_size: ${written}`).maxBatchSize).toBe(value);
  });

  it("holds a 64-bit number at the largest exact one", () => {
    const text = "sequence_batching { max_sequence_idle_microseconds: 18446744073709551615 }";
    expect(configOf(text).sequenceBatching?.maxSequenceIdleMicroseconds).toBe(2 ** 53 - 1);
  });

  it.each([
    ["1", 1],
    [".5", 0.5],
    ["1.5e-3f", 0.0015],
    ["-inf", -Infinity],
  ])("reads the number %s", (written, value) => {
    const text = `model_metrics { metric_control { histogram_options { buckets: ${written} } } }`;
    expect(configOf(text).modelMetrics?.metricControl[0]?.histogramOptions?.buckets).toEqual([
      value,
    ]);
  });

  it.each(["true", "True", "t", "1"])("reads %s as true", (written) => {
    expect(configOf(`response_cache { enable: ${written} }`).responseCache?.enable).toBe(true);
  });

  it("reads every escape of a string", () => {
    expect(configOf(String.raw`name: "\x41\102\n\"\'\\\u00e9\U0001f30a\303\251"`).name).toBe(
      "AB\n\"'\\é🌊é",
    );
  });

  it.each([
    [
      "\n\nmax_batch_sise: 8",
      "3: model config has no field 'max_batch_sise'; did you mean 'max_batch_size'?",
    ],
    ["tide: 8", "1: model config has no field 'tide'"],
    ["maxBatchSize: 8", "1: model config has no field 'maxBatchSize'"],
    ["input {\n dim: 8 }", "2: model input has no field 'dim'; did you mean 'dims'?"],
    ['\nmax_batch_size: "eight"', `2: field 'max_batch_size' expects an integer, got "eight"`],
    ["max_batch_size: 4.0", "1: field 'max_batch_size' expects an integer, got 4.0"],
    ["max_batch_size: 089", "1: field 'max_batch_size' expects an integer, got 089"],
    [
      "max_batch_size: 2147483648",
      "1: field 'max_batch_size' expects an integer from -2147483648 to 2147483647, got 2147483648",
    ],
    ["max_batch_size: [ 1 ]", "1: field 'max_batch_size' expects an integer, got a list"],
    ["max_batch_size: { }", "1: field 'max_batch_size' expects an integer, got a message"],
    ["max_batch_size 4", "1: expected ':' after the field name 'max_batch_size'"],
    ["input { dims [ 1 ] }", "1: expected ':' after the field name 'dims'"],
    ["backend: python", "1: field 'backend' expects a string in quotes, got python"],
    ["backend: ", "1: expected a value, got the end of the file"],
    ["response_cache { enable: yes }", "1: field 'enable' expects true or false, got yes"],
    [
      "input { format: NHWC }",
      "1: field 'format' expects one of FORMAT_NONE, FORMAT_NHWC, FORMAT_NCHW, got NHWC",
    ],
    ["input { data_type: 99 }", "got 99"],
    ["name: 'a'\nname: 'b'", "2: field 'name' is given more than once"],
    [
      "version_policy { all {}\nlatest {} }",
      "2: field 'latest' is given together with 'all'; only one of them may be",
    ],
    [
      "dynamic_batching {} sequence_batching {}",
      "'sequence_batching' is given together with 'dynamic_batching'",
    ],
    ["version_policy: 3", "1: field 'version_policy' expects a message in braces, got 3"],
    [
      "parameters { key: 'a' key: 'b' }",
      "1: an entry of 'parameters' has one 'key' and one 'value', got 'key'",
    ],
    ["parameters { }", "1: an entry of 'parameters' has no 'key'"],
    ["input [ { }, ]", "1: expected a value, got ]"],
    ["input [ { } { } ]", "1: expected ',' or ']', got {"],
    ["input {\n", "2: expected a field name, got the end of the file"],
    ["}", "1: expected a field name, got }"],
    ["name: 'a\n'", "1: the string has no closing quote on its line"],
    [String.raw`name: "\q"`, String.raw`1: unknown escape '\q' in a string`],
    [String.raw`name: "\xff"`, "1: the escapes of a string do not make valid UTF-8"],
    [String.raw`name: "\ud800"`, String.raw`1: escape \ud800 is not a Unicode character`],
    ["name: $", "1: unexpected character '$'"],
  ])("refuses %j", (text, message) => {
    expect(() => configOf(text)).toThrow(
      expect.objectContaining({ code: "INVALID_ARG", message: expect.stringContaining(message) }),
    );
    expect(() => configOf(text)).toThrow(/^config\.pbtxt:\d/);
  });

  it("refuses messages that nest without an end", () => {
    expect(() => configOf("input {".repeat(100))).toThrow(
      "config.pbtxt:1: messages nest deeper than 16",
    );
  });

  it("refuses a text that is too long before it looks at it", () => {
    expect(() => configOf("#".repeat((1 << 20) + 1))).toThrow(
      "config.pbtxt: the file has 1048577 characters, at most 1048576 are read",
    );
  });

  it("reads the longest list and the longest string without delay", () => {
    const started = performance.now();
    configOf(`input { ${"dims:1 ".repeat(100_000)} }`);
    configOf(`name: "${String.raw`\n`.repeat(200_000)}"`);
    expect(performance.now() - started).toBeLessThan(5000);
  });

  it.each(configNames)("reads the config %s as protobufjs does", (name) => {
    const text = configText(name);
    expect(parseConfigPbtxt(text, name)).toEqual(reference(textformat.fromText(modelConfig, text)));
  });

  it("reads whatever protobufjs writes as the message it was", () => {
    assert(
      property(randomMessage(modelConfig), (message) => {
        const text = textformat.toText(modelConfig, message);
        expect(configOf(text)).toEqual(reference(modelConfig.create(message)));
      }),
      { numRuns: 50 },
    );
  });
});

/** A protobufjs message in the form of a ModelConfig. */
function reference(message: protobuf.Message): unknown {
  const object = modelConfig.toObject(message, { enums: String, longs: Number, defaults: true });
  return JSON.parse(JSON.stringify(object), (_, value: unknown) => value ?? undefined);
}
