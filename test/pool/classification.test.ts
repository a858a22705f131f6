import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { withClassification } from "../../pool/classification.ts";
import type { Labels } from "../../pool/labels.ts";
import { ModelStatisticsRecorder } from "../../serving/model-statistics.ts";
import { systemClock } from "../../serving/clock.ts";
import { directScheduler } from "../../pool/scheduler/direct-scheduler.ts";
import { bytesElements } from "../../protocol/bytes-tensor.ts";
import type { Datatype } from "../../protocol/datatype.ts";
import type { Shape } from "../../protocol/shape.ts";
import { turn } from "../helpers/fake-clock.ts";
import { InstantInstances } from "../helpers/instant-instances.ts";
import { pendingRequest, requestFor, type SentRequest } from "../helpers/requests.ts";
import { modelInput, modelOutput, servedModel } from "../helpers/served-model.ts";

interface Output {
  readonly datatype: Datatype;
  readonly shape: Shape;
  readonly bytes: Uint8Array;
}

/** Asks a model that answers with the given output for so many classes. */
async function ask(
  output: Output,
  classification: number,
  given: Partial<{ maxBatchSize: number; labels: Labels }> = {},
) {
  const model = servedModel("m", {
    maxBatchSize: given.maxBatchSize ?? 8,
    input: [modelInput("IN", "TYPE_FP32", given.maxBatchSize === 0 ? [1, 4] : [4])],
    output: [modelOutput("OUT", "TYPE_FP32", [-1])],
  });
  const scheduler = directScheduler({
    instances: new InstantInstances((request) => ({
      modelName: "m",
      modelVersion: "1",
      id: request.id,
      outputs: [{ name: "OUT", ...output }],
      parameters: new Map(),
    })),
    statistics: new ModelStatisticsRecorder({ ...model, tags: {} }),
    clock: systemClock,
  });
  const sent = pendingRequest(
    requestFor(model, undefined, { outputs: [{ name: "OUT", classification }] }),
  );
  withClassification(scheduler, given.labels ?? new Map()).enqueue(sent);
  await turn();
  return sent;
}

function strings(sent: SentRequest): string[] {
  const output = sent.sink.responses[0]?.outputs[0];
  return output
    ? [...bytesElements(output.bytes)].map((element) => Buffer.from(element).toString())
    : [];
}

function fp32(shape: Shape, ...values: number[]): Output {
  return { datatype: "FP32", shape, bytes: new Uint8Array(Float32Array.from(values).buffer) };
}

describe("withClassification", () => {
  it("answers with value, index and label of the greatest values", async () => {
    const labels = new Map([["OUT", ["cat", "dog", "", "fish"]]]);
    const sent = await ask(fp32([1, 4], 0.1, 0.3, 0.2, -5), 10, { labels });
    expect(strings(sent)).toEqual([
      "0.300000:1:dog",
      "0.200000:2",
      "0.100000:0:cat",
      "-5.000000:3:fish",
    ]);
    expect(sent.sink.responses[0]?.outputs[0]).toMatchObject({
      name: "OUT",
      datatype: "BYTES",
      shape: [1, 4],
    });
  });

  it("reads values wherever they begin in a larger buffer", async () => {
    const { bytes, ...output } = fp32([1, 2], 1, 2);
    const larger = Buffer.alloc(64);
    larger.set(bytes, 3);
    const sent = await ask({ ...output, bytes: larger.subarray(3, 3 + bytes.length) }, 1);
    expect(sent.sink.error).toBeUndefined();
    expect(strings(sent)).toEqual(["2.000000:1"]);
  });

  it("chooses item by item of a batch", async () => {
    const sent = await ask(fp32([2, 3], 1, 2, 3, 4, 6, 5), 2);
    expect(strings(sent)).toEqual(["3.000000:2", "2.000000:1", "6.000000:1", "5.000000:2"]);
    expect(sent.sink.responses[0]?.outputs[0]?.shape).toEqual([2, 2]);
  });

  it("has no batch dimension where the model has none", async () => {
    const sent = await ask(fp32([4], 1, 2, 3, 4), 3, { maxBatchSize: 0 });
    expect(strings(sent)).toEqual(["4.000000:3", "3.000000:2", "2.000000:1"]);
    expect(sent.sink.responses[0]?.outputs[0]?.shape).toEqual([3]);
  });

  it("puts equal values in the order of their indices and NaN last", async () => {
    const sent = await ask(fp32([1, 5], NaN, 1, -Infinity, 1, Infinity), 5);
    expect(strings(sent)).toEqual(["inf:4", "1.000000:1", "1.000000:3", "nan:0", "-inf:2"]);
  });

  it("prints integers plainly and exactly", async () => {
    const bytes = new Uint8Array(BigInt64Array.of(-(2n ** 63n), 2n ** 63n - 1n).buffer);
    const sent = await ask({ datatype: "INT64", shape: [1, 2], bytes }, 2);
    expect(strings(sent)).toEqual(["9223372036854775807:1", "-9223372036854775808:0"]);
  });

  it("prints great numbers without an exponent", async () => {
    const sent = await ask(fp32([1, 2], 1e30, 1e-7), 2);
    expect(strings(sent)).toEqual(["1000000015047466219876688855040.000000:0", "0.000000:1"]);
  });

  it("reads outputs wherever in their buffer they begin", async () => {
    const shifted = new Uint8Array(17).subarray(1);
    shifted.set(fp32([4], 4, 3, 2, 1).bytes);
    const sent = await ask({ datatype: "FP32", shape: [1, 4], bytes: shifted }, 1);
    expect(strings(sent)).toEqual(["4.000000:0"]);
  });

  it("finds what a full sort finds", async () => {
    const values = fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 1, maxLength: 50 });
    await fc.assert(
      fc.asyncProperty(values, fc.integer({ min: 1, max: 60 }), async (numbers, count) => {
        const sent = await ask(fp32([1, numbers.length], ...numbers), count);
        const sorted = numbers
          .map((value, index) => ({ value, index }))
          .toSorted((a, b) => b.value - a.value || a.index - b.index);
        expect(strings(sent)).toEqual(
          sorted.slice(0, count).map(({ value, index }) => `${value.toFixed(6)}:${index}`),
        );
      }),
      { numRuns: 50 },
    );
  });

  it("gives no strings for an output without elements", async () => {
    const sent = await ask(fp32([1, 0]), 3);
    expect(sent.sink.responses[0]?.outputs[0]).toMatchObject({ shape: [1, 0] });
  });

  it.each(["BYTES", "BOOL", "FP16"] as const)("refuses an output of %s", async (datatype) => {
    const sent = await ask({ datatype, shape: [1, 2], bytes: new Uint8Array(4) }, 1);
    expect(sent.sink.error).toMatchObject({
      code: "INVALID_ARG",
      message: `class result not available for output due to unsupported type '${datatype}'`,
    });
    expect(sent.sink.responses).toEqual([]);
  });

  it("refuses to print more classes than anybody reads", async () => {
    const bytes = new Uint8Array(100_000);
    const sent = await ask({ datatype: "UINT8", shape: [1, 100_000], bytes }, 100_000);
    expect(sent.sink.error?.message).toBe(
      "output 'OUT': classification gives 100000 classes, expected at most 65536",
    );
  });

  it("leaves an output alone for which it was not asked", async () => {
    const output = fp32([1, 2], 1, 2);
    const sent = await ask(output, 0);
    expect(sent.sink.responses[0]?.outputs[0]).toEqual({ name: "OUT", ...output });
  });
});
