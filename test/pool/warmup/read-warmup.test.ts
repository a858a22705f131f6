import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { readWarmup, type WarmupSample } from "../../../pool/warmup/read-warmup.ts";
import type { ModelConfig } from "../../../protocol/model-config.ts";
import { parseConfigPbtxt } from "../../../repository/config-pbtxt.ts";
import { testFolder } from "../../helpers/onnx-version.ts";

/** Reads one sample, with that input, of a model with that input and, where given, files in its warmup folder. */
async function read(
  tensors: string,
  warmup: string,
  files: Readonly<Record<string, Uint8Array>> = {},
): Promise<readonly WarmupSample[]> {
  const folder = testFolder();
  mkdirSync(path.join(folder, "warmup"));
  for (const [name, content] of Object.entries(files))
    writeFileSync(path.join(folder, "warmup", name), content);
  writeFileSync(path.join(folder, "secret"), "secret".repeat(4));
  const parsed: ModelConfig = parseConfigPbtxt(`${tensors} ${warmup}`, "config.pbtxt");
  const model = { name: "m", version: "1", config: parsed };
  return readWarmup(model, folder, (bytes) => bytes.fill(0xa5));
}

function config(dataType: string, dims = "2", more = "max_batch_size: 4"): string {
  return `${more} input { name: "X" data_type: ${dataType} dims: [ ${dims} ] }`;
}

function sample(dataType: string, data: string, dims = "2", more = "batch_size: 1"): string {
  return `model_warmup { name: "w" ${more} inputs { key: "X" value { data_type: ${dataType} dims: [ ${dims} ] ${data} } } }`;
}

async function bytesOf(
  dataType: string,
  data: string,
  file?: Uint8Array,
): Promise<readonly number[]> {
  const [only] = await read(config(dataType), sample(dataType, data), file && { data: file });
  return [...(only?.request.inputs[0]?.bytes ?? [])];
}

describe("readWarmup", () => {
  it("makes a request of one item, with how many run together and how often", async () => {
    const more = "batch_size: 3 count: 5";
    const samples = await read(
      config("TYPE_FP32"),
      sample("TYPE_FP32", "zero_data: true", "2", more),
    );
    expect(samples).toMatchObject([{ name: "w", batchSize: 3, count: 5 }]);
    expect(samples[0]?.request).toMatchObject({
      id: "",
      batchSize: 1,
      inputs: [{ name: "X", datatype: "FP32", shape: [1, 2], bytes: new Uint8Array(8) }],
    });
  });

  it("gives no batch dimension to a model without batching", async () => {
    const [only] = await read(config("TYPE_INT8", "2", ""), sample("TYPE_INT8", "zero_data: true"));
    expect(only?.request.inputs).toMatchObject([{ shape: [2] }]);
  });

  it("skips a sample of no requests, and takes no count for once", async () => {
    const none = sample("TYPE_FP32", "zero_data: true", "2", "batch_size: 0 count: 2");
    const samples = await read(config("TYPE_FP32"), none + sample("TYPE_FP32", "zero_data: true"));
    expect(samples).toMatchObject([{ batchSize: 1, count: 1 }]);
  });

  it.each([
    ["TYPE_BOOL", 1],
    ["TYPE_UINT8", 1],
    ["TYPE_UINT16", 2],
    ["TYPE_UINT32", 4],
    ["TYPE_UINT64", 8],
    ["TYPE_INT8", 1],
    ["TYPE_INT16", 2],
    ["TYPE_INT32", 4],
    ["TYPE_INT64", 8],
    ["TYPE_FP16", 2],
    ["TYPE_FP32", 4],
    ["TYPE_FP64", 8],
    ["TYPE_BF16", 2],
  ])("fills %s with zeros, at random and from a file", async (dataType, size) => {
    const zeros = Array.from({ length: 2 * size }, () => 0);
    const random = zeros.map(() => (dataType === "TYPE_BOOL" ? 1 : 0xa5));
    const file = Uint8Array.from(zeros, (_, i) => i % 2);
    expect(await bytesOf(dataType, "zero_data: true")).toEqual(zeros);
    expect(await bytesOf(dataType, "random_data: true")).toEqual(random);
    expect(await bytesOf(dataType, 'input_data_file: "data"', file)).toEqual([...file]);
  });

  it("takes empty strings for zeros and at random, and from a file what it holds", async () => {
    const empty = Array.from({ length: 8 }, () => 0);
    const file = Uint8Array.of(1, 0, 0, 0, 0x61, 2, 0, 0, 0, 0x62, 0x63);
    expect(await bytesOf("TYPE_STRING", "zero_data: true")).toEqual(empty);
    expect(await bytesOf("TYPE_STRING", "random_data: true")).toEqual(empty);
    expect(await bytesOf("TYPE_STRING", 'input_data_file: "data"', file)).toEqual([...file]);
  });

  it("takes no more of a file than the tensor holds", async () => {
    const file = Uint8Array.of(1, 2, 3);
    expect(await bytesOf("TYPE_INT8", 'input_data_file: "data"', file)).toEqual([1, 2]);
  });

  it("adds what clients do not give, such as the controls of a sequence", async () => {
    const control =
      'sequence_batching { control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } }';
    const inputs =
      'inputs { key: "START" value { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } }';
    const [only] = await read(
      `${config("TYPE_FP32")} ${control}`,
      sample("TYPE_FP32", "zero_data: true", "2", `batch_size: 1 ${inputs}`),
    );
    const shapes = only?.request.inputs.map(({ name, shape }) => [name, shape]);
    expect(shapes?.toSorted()).toEqual([
      ["START", [1, 1]],
      ["X", [1, 2]],
    ]);
  });

  const label = "[request id: <id_unknown>] ";
  const data = 'input_data_file: "data"';
  it.each([
    [
      "has no data",
      sample("TYPE_FP32", ""),
      `${label}warmup setting expects input 'X' to have input_data_type set`,
    ],
    [
      "leaves a dimension open",
      sample("TYPE_FP32", "zero_data: true", "-1"),
      "warmup setting expects all variable-size dimensions are specified for input 'X'",
    ],
    [
      "has another datatype",
      sample("TYPE_INT32", "zero_data: true"),
      `${label}inference input 'X' data-type is 'INT32', but model 'm' expects 'FP32'`,
    ],
    [
      "has no datatype",
      sample("TYPE_INVALID", "zero_data: true"),
      `${label}inference input 'X' data-type is '<invalid>'`,
    ],
    [
      "has another shape",
      sample("TYPE_FP32", "zero_data: true", "3"),
      `${label}unexpected shape for input 'X' for model 'm'. Expected [-1,2], got [1,3].`,
    ],
    [
      "lacks an input",
      'model_warmup { name: "w" batch_size: 1 }',
      `${label}expected 1 inputs but got 0 inputs for model 'm'.`,
    ],
    [
      "is too large for anybody's memory",
      sample("TYPE_FP32", "zero_data: true", "65536, 65536"),
      "warmup setting of input 'X' makes 17179869184 bytes, expected at most 1073741824",
    ],
    [
      "has many copies of much",
      sample("TYPE_FP32", "zero_data: true", "2", "batch_size: 4000000000"),
      "warmup setting of input 'X' makes 32000000000 bytes, expected at most 1073741824",
    ],
    [
      "names a file that is not there",
      sample("TYPE_FP32", 'input_data_file: "nothing"'),
      "warmup setting of input 'X': file 'nothing' does not exist in the model's folder 'warmup'",
    ],
    [
      "names a folder",
      sample("TYPE_FP32", 'input_data_file: "."'),
      "warmup setting of input 'X': file '.' does not exist in the model's folder 'warmup'",
    ],
    [
      "leads out of its folder",
      sample("TYPE_FP32", 'input_data_file: "../secret"'),
      "warmup setting of input 'X': file '../secret' is not below the model's folder 'warmup'",
    ],
    [
      "has a file that is too short",
      sample("TYPE_FP32", data),
      `${label}warmup setting expects 8 bytes, but the data provided from data only has 3 bytes`,
    ],
  ])("refuses a sample that %s", async (_, warmup, text) => {
    await expect(
      read(config("TYPE_FP32"), warmup, { data: new Uint8Array(3) }),
    ).rejects.toMatchObject({ code: "INVALID_ARG", message: expect.stringContaining(text) });
  });

  it.each([
    [[1, 0, 0, 0, 0x61], "expected 2 string elements"],
    [[9, 0, 0, 0, 0x61], "incomplete string data for inference input 'X'"],
  ])("refuses a file with other strings than the shape says", async (file, text) => {
    await expect(bytesOf("TYPE_STRING", data, Uint8Array.from(file))).rejects.toThrow(text);
  });
});
