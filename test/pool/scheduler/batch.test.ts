import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeStrings } from "../../../pool/backend/string-elements.ts";
import { Batcher } from "../../../pool/scheduler/batch.ts";
import type { Tensor } from "../../../protocol/tensor.ts";
import { uncheckedRequest } from "../../helpers/unchecked-request.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";

const batching = servedModel("m", {
  maxBatchSize: 64,
  input: [modelInput("X", "TYPE_FP32", [-1])],
  output: [modelOutput("Y", "TYPE_FP32", [-1])],
});

function floats(name: string, shape: readonly number[], values: readonly number[]): Tensor {
  return { name, datatype: "FP32", shape, bytes: new Uint8Array(Float32Array.from(values).buffer) };
}

/** What an identity model makes of a merged input. */
function merged(
  batcher: Batcher,
  requests: readonly ReturnType<typeof uncheckedRequest>[],
): Tensor {
  const [input] = batcher.merge(requests);
  if (!input) throw new Error("nothing was merged");
  const { parts, ...head } = input;
  return { ...head, name: "Y", bytes: Buffer.concat(parts) };
}

describe("Batcher", () => {
  it("gives every request its own rows back, whatever the batch was made of", () => {
    const items = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(items, fc.integer({ min: 1, max: 4 }), (sizes, width) => {
        let next = 0;
        const requests = sizes.map((size, i) => {
          const values = Array.from({ length: size * width }, () => next++);
          return uncheckedRequest(batching, [floats("X", [size, width], values)], { id: `${i}` });
        });
        const batcher = new Batcher(batching);
        const responses = batcher.split(requests, [merged(batcher, requests)]);
        for (const [i, request] of requests.entries()) {
          expect(responses[i]?.id).toBe(`${i}`);
          expect(responses[i]?.outputs[0]?.shape).toEqual([sizes[i], width]);
          expect(Buffer.from(responses[i]?.outputs[0]?.bytes ?? [])).toEqual(
            Buffer.from(request.inputs[0]?.bytes ?? []),
          );
        }
      }),
    );
  });

  it("gives every request its own strings back", () => {
    const batches = fc.array(fc.array(fc.string(), { minLength: 1, maxLength: 4 }), {
      minLength: 1,
      maxLength: 5,
    });
    fc.assert(
      fc.property(batches, (batch) => {
        const requests = batch.map((strings) => {
          const tensor: Tensor = {
            name: "X",
            datatype: "BYTES",
            shape: [strings.length, 1],
            bytes: encodeStrings(strings),
          };
          return uncheckedRequest(batching, [tensor]);
        });
        const batcher = new Batcher(batching);
        const responses = batcher.split(requests, [merged(batcher, requests)]);
        expect(responses.map(({ outputs }) => Buffer.from(outputs[0]?.bytes ?? []))).toEqual(
          batch.map((strings) => Buffer.from(encodeStrings(strings))),
        );
      }),
    );
  });

  it("shows the model the reshaped dimensions and the client those of the config", () => {
    const model = servedModel("m", {
      maxBatchSize: 8,
      input: [modelInput("X", "TYPE_FP32", [1], { reshape: { shape: [] } })],
      output: [{ ...modelOutput("Y", "TYPE_FP32", [-1, 2]), reshape: { shape: [1, 2, -1] } }],
    });
    const batcher = new Batcher(model);
    const requests = [uncheckedRequest(model, [floats("X", [2, 1], [1, 2])])];
    expect(batcher.merge(requests)[0]?.shape).toEqual([2]);
    const output = floats(
      "Y",
      [2, 1, 2, 3],
      Array.from({ length: 12 }, () => 0),
    );
    expect(batcher.split(requests, [output])[0]?.outputs[0]?.shape).toEqual([2, 3, 2]);
  });

  it("refuses an output whose first dimension is not the batch", () => {
    const requests = [
      uncheckedRequest(batching, [floats("X", [2, 1], [1, 2])]),
      uncheckedRequest(batching, [floats("X", [1, 1], [3])]),
    ];
    expect(() => new Batcher(batching).split(requests, [floats("Y", [1, 1], [0])])).toThrow(
      "model 'm': output 'Y': given shape [1,1], expected a batch of 3",
    );
  });

  it("returns only the outputs a request asks for, in its order", () => {
    const model = servedModel("m", {
      maxBatchSize: 8,
      output: [modelOutput("A", "TYPE_FP32", [1]), modelOutput("B", "TYPE_FP32", [1])],
    });
    const batcher = new Batcher(model);
    const one = uncheckedRequest(model, [floats("X", [1, 1], [0])], { outputs: [{ name: "B" }] });
    const all = uncheckedRequest(model, [floats("X", [1, 1], [0])]);
    expect(batcher.outputs([one])).toEqual(["B"]);
    expect(batcher.outputs([one, all])).toEqual(["B", "A"]);
    const responses = batcher.split(
      [one, all],
      [floats("B", [2, 1], [1, 2]), floats("A", [2, 1], [3, 4])],
    );
    expect(responses.map(({ outputs }) => outputs.map(({ name }) => name))).toEqual([
      ["B"],
      ["A", "B"],
    ]);
  });

  it("shows a scalar as [1] where the config can say nothing else", () => {
    const model = servedModel("m", { output: [modelOutput("Y", "TYPE_FP32", [1])] });
    const responses = new Batcher(model).split(
      [uncheckedRequest(model, [])],
      [floats("Y", [], [7])],
    );
    expect(responses[0]?.outputs[0]?.shape).toEqual([1]);
  });

  it("refuses to put requests with different inputs together", () => {
    const requests = [
      uncheckedRequest(batching, [floats("X", [1, 1], [0])]),
      uncheckedRequest(batching, []),
    ];
    expect(() => new Batcher(batching).merge(requests)).toThrow("requests with different inputs");
  });
});
