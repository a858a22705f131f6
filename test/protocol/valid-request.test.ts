import { describe, expect, it } from "vitest";
import { joinBytesElements } from "../../protocol/bytes-tensor.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { InferenceRequest } from "../../protocol/inference.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import { noParameters } from "../../protocol/parameters.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import { validRequest } from "../../protocol/valid-request.ts";
import { modelInput, modelOutput, servedModel } from "../helpers/served-model.ts";

const out = modelOutput("OUT", "TYPE_FP32", [4]);
const batching = servedModel("batch", {
  maxBatchSize: 8,
  input: [modelInput("IN", "TYPE_FP32", [4])],
  output: [out, modelOutput("OUT2", "TYPE_FP32", [4])],
});
const pair = servedModel("pair", {
  maxBatchSize: 8,
  input: [modelInput("A", "TYPE_FP32", [-1, 4]), modelInput("B", "TYPE_INT32", [2])],
  output: [out],
});
const optional = servedModel("opt", {
  maxBatchSize: 8,
  input: [
    modelInput("A", "TYPE_FP32", [4]),
    modelInput("B", "TYPE_INT32", [2], { optional: true }),
  ],
  output: [out],
});
const strings = servedModel("str", { input: [modelInput("IN", "TYPE_STRING", [-1])] });
const matrix = servedModel("matrix", { input: [modelInput("IN", "TYPE_FP32", [-1, -1])] });

function fp32(name: string, shape: readonly number[], byteLength?: number): Tensor {
  const size = byteLength ?? shape.reduce((product, d) => product * d, 4);
  return { name, datatype: "FP32", shape, bytes: new Uint8Array(size) };
}

function int32(name: string, shape: readonly number[]): Tensor {
  return { ...fp32(name, shape), datatype: "INT32" };
}

function text(shape: readonly number[], bytes: Uint8Array): Tensor {
  return { name: "IN", datatype: "BYTES", shape, bytes };
}

function request(
  inputs: readonly Tensor[],
  more: Partial<InferenceRequest> = {},
): InferenceRequest {
  return {
    modelName: "m",
    modelVersion: "",
    id: "",
    inputs,
    outputs: [],
    parameters: noParameters,
    priority: 0,
    timeoutMicroseconds: 0,
    ...more,
  };
}

function refusal(model: ServedModel, given: InferenceRequest): string {
  try {
    validRequest(model, given);
  } catch (error) {
    if (error instanceof InferenceError && error.code === StatusCode.InvalidArg) {
      return error.message;
    }
    throw error;
  }
  return "accepted";
}

const unnamed = "[request id: <id_unknown>] ";
const element = (value: string): Uint8Array => new TextEncoder().encode(value);

describe("validRequest", () => {
  it("accepts what fits and tells the batch size and the version", () => {
    const given = request([fp32("IN", [3, 4])], { id: "7", outputs: [{ name: "OUT" }] });
    const checked = validRequest(batching, given);
    expect(checked.batchSize).toBe(3);
    expect(checked.model).toBe(batching);
    expect(checked).toMatchObject({ ...given });
  });

  it("counts a request to a model without batching as one item", () => {
    expect(validRequest(matrix, request([fp32("IN", [5, 2])])).batchSize).toBe(1);
  });

  it("names the request in its refusals", () => {
    const given = request([fp32("IN", [9, 4])], { id: "abc" });
    expect(refusal(batching, given)).toBe(
      "[request id: abc] inference request batch-size must be <= 8 for 'batch'",
    );
  });

  it("checks every request anew, whatever was seen before", () => {
    const given = request([fp32("IN", [1, 4])]);
    expect(refusal(batching, given)).toBe("accepted");
    expect(refusal(batching, given)).toBe("accepted");
    const twice = request([fp32("A", [1, 1, 4]), fp32("A", [1, 1, 4])]);
    expect(refusal(pair, twice)).toBe(`${unnamed}input 'A' already exists in request`);
    expect(refusal(batching, request([fp32("IN", [1, 4]), fp32("IN", [1, 4])]))).toBe(
      `${unnamed}input 'IN' already exists in request`,
    );
  });

  it("refuses inputs and outputs that the model does not have", () => {
    expect(refusal(batching, request([fp32("X", [1, 4])]))).toBe(
      "unexpected inference input 'X' for model 'batch'",
    );
    expect(refusal(batching, request([fp32("IN", [1, 4])], { outputs: [{ name: "X" }] }))).toBe(
      "unexpected inference output 'X' for model 'batch'",
    );
  });

  it("asks for each output once", () => {
    const outputs = [{ name: "OUT" }, { name: "OUT2" }, { name: "OUT" }];
    const checked = validRequest(batching, request([fp32("IN", [1, 4])], { outputs }));
    expect(checked.outputs.map((output) => output.name)).toEqual(["OUT", "OUT2"]);
  });

  it("refuses too few and too many inputs and lists what is missing", () => {
    expect(refusal(pair, request([fp32("A", [1, 1, 4])]))).toBe(
      `${unnamed}expected 2 inputs but got 1 inputs for model 'pair'. Got input(s) ['A'], ` +
        "but missing required input(s) ['B']. Please provide all required input(s).",
    );
    expect(refusal(batching, request([fp32("IN", [1, 4]), fp32("X", [1, 4])]))).toContain(
      "expected 1 inputs but got 2 inputs",
    );
    expect(
      refusal(optional, request([fp32("A", [1, 4]), int32("B", [1, 2]), int32("C", [1, 2])])),
    ).toContain("expected number of inputs between 1 and 2 but got 3 inputs for model 'opt'");
  });

  it("lets an optional input be absent but not the required one beside it", () => {
    expect(refusal(optional, request([fp32("A", [1, 4])]))).toBe("accepted");
    expect(refusal(optional, request([int32("B", [1, 2])]))).toContain(
      "Got input(s) ['B'], but missing required input(s) ['A']",
    );
  });

  it("refuses another datatype", () => {
    expect(refusal(batching, request([int32("IN", [1, 4])]))).toBe(
      `${unnamed}inference input 'IN' data-type is 'INT32', but model 'batch' expects 'FP32'`,
    );
  });

  it("refuses a shape with another rank or another dimension", () => {
    const start = `${unnamed}unexpected shape for input 'IN' for model`;
    for (const shape of [[1, 3], [4], [1, 1, 4]]) {
      expect(refusal(batching, request([fp32("IN", shape)]))).toContain(
        `${start} 'batch'. Expected [-1,4], got [${shape.join(",")}]. NOTE: Setting a non-zero max_batch_size`,
      );
    }
    expect(refusal(matrix, request([fp32("IN", [4])]))).toBe(
      `${start} 'matrix'. Expected [-1,-1], got [4]. `,
    );
  });

  it("refuses a batch that is missing, empty, unequal or too large", () => {
    expect(refusal(batching, request([fp32("IN", [])]))).toBe(
      `${unnamed}input 'IN' has no shape but model requires batch dimension for 'batch'`,
    );
    expect(refusal(batching, request([fp32("IN", [0, 4])]))).toContain("must be >= 1 for 'batch'");
    expect(refusal(pair, request([fp32("A", [1, 1, 4]), int32("B", [2, 2])]))).toBe(
      `${unnamed}input 'B' batch size does not match other inputs for 'pair'`,
    );
    expect(refusal(batching, request([fp32("IN", [9, 4])]))).toContain("must be <= 8 for 'batch'");
  });

  it("lets a batch over the maximum through where oversized ones are split", () => {
    const splitting = { ...batching, splitOversizedBatches: true };
    expect(validRequest(splitting, request([fp32("IN", [20, 4])])).batchSize).toBe(20);
  });

  it("refuses dimensions that are negative, broken or beyond any message", () => {
    const of = (shape: readonly number[]): string =>
      refusal(matrix, request([fp32("IN", shape, 4)]));
    expect(of([-1, 4])).toBe(
      `${unnamed}All input dimensions should be specified for input 'IN' for model 'matrix', got [-1,4]`,
    );
    for (const dimension of [-2, 1.5, NaN, Infinity, 2 ** 31]) {
      expect(of([dimension, 1])).toContain("dimensions must be integers from 0 to 2^31-1");
    }
    expect(refusal(batching, request([fp32("IN", [-4, 4], 4)]))).toContain("invalid shape for");
    expect(of(Array<number>(100_000).fill(1)).length).toBeLessThan(300);
  });

  it("refuses a shape whose elements nobody could count", () => {
    expect(refusal(matrix, request([fp32("IN", [2 ** 31 - 1, 2 ** 31 - 1], 4)]))).toContain(
      "shape [2147483647,2147483647] has more elements than any tensor can hold",
    );
  });

  it("refuses bytes that are not as many as the shape says", () => {
    expect(refusal(batching, request([fp32("IN", [1, 4], 15)]))).toBe(
      `${unnamed}input byte size mismatch for input 'IN' for model 'batch'. Expected 16, got 15`,
    );
    expect(refusal(matrix, request([fp32("IN", [0, 3], 0)]))).toBe("accepted");
  });

  it("counts the elements of a BYTES input", () => {
    const two = joinBytesElements([element("a"), element("bc")]);
    const where = "for inference input 'IN' for model 'str'";
    expect(refusal(strings, request([text([2], two)]))).toBe("accepted");
    expect(refusal(strings, request([text([0], new Uint8Array())]))).toBe("accepted");
    expect(refusal(strings, request([text([3], two)]))).toBe(
      `${unnamed}expected 3 string elements for inference input 'IN' for model 'str', got 2`,
    );
    expect(refusal(strings, request([text([1], two)]))).toBe(
      `${unnamed}unexpected number of string elements 2 ${where}, expecting 1`,
    );
  });

  it("refuses a BYTES input that ends inside an element", () => {
    const two = joinBytesElements([element("a"), element("bc")]);
    expect(refusal(strings, request([text([2], two.subarray(0, 7))]))).toContain(
      "incomplete string length indicator for inference input 'IN' for model 'str', expecting 4 bytes but only 2 bytes available.",
    );
    expect(refusal(strings, request([text([2], two.subarray(0, 10))]))).toBe(
      "incomplete string data for inference input 'IN', expecting string of length 2 but only 1 bytes available",
    );
    const huge = Uint8Array.of(255, 255, 255, 255, 1);
    expect(refusal(strings, request([text([1], huge)]))).toContain("string of length 4294967295");
  });
});
