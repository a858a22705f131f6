import { Metadata, status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { InferenceResponse } from "../../../protocol/inference.ts";
import type { ValidInferenceRequest } from "../../../protocol/valid-request.ts";
import { eventually } from "../../helpers/eventually.ts";
import { echo } from "../../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { collect } from "../../helpers/grpc-client.ts";
import { floats, GrpcStand } from "./grpc-stand.ts";
import type { Fields } from "../../helpers/grpc-client.ts";

const config = {
  input: [modelInput("INPUT", "TYPE_FP32", [1, 1])],
  output: [modelOutput("OUTPUT", "TYPE_FP32", [1, 1])],
};

function valueOf(request: ValidInferenceRequest): number {
  return Buffer.from(request.inputs[0]?.bytes ?? []).readFloatLE();
}

/** Waits as many milliseconds as its input says. */
async function* slow(request: ValidInferenceRequest): AsyncGenerator<InferenceResponse> {
  await new Promise((resolve) => setTimeout(resolve, valueOf(request)));
  yield echo(request);
}

/** Answers as often as its input says; below zero it fails after so many answers. */
function* often(request: ValidInferenceRequest): Generator<InferenceResponse> {
  const times = valueOf(request);
  for (let i = 0; i < Math.abs(times); i += 1) yield echo(request);
  if (times < 0) throw new Error("unexpected");
}

async function sendAll(
  stand: GrpcStand,
  requests: readonly (Fields | Buffer)[],
  metadata?: Metadata,
): Promise<Fields[]> {
  const stream = stand.stream(metadata);
  for (const request of requests) stream.write(request);
  stream.end();
  return collect(stream);
}

/** Id and final flag of each response, or the text of its error. */
function summary(responses: readonly Fields[]): unknown[] {
  return responses.map(({ errorMessage, inferResponse }) => {
    const { id, parameters } = inferResponse;
    return errorMessage ?? [id, parameters.triton_final_response.boolParam];
  });
}

const closing = new Metadata();
closing.set("triton_grpc_error", "true");

describe("modelStreamInfer", () => {
  let stand: GrpcStand;
  beforeAll(async () => {
    stand = await GrpcStand.start();
    stand.engine.add(servedModel("slow", config), slow);
    const decoupled = { ...config, modelTransactionPolicy: { decoupled: true } };
    stand.engine.add(servedModel("often", decoupled), often);
  });
  afterAll(() => stand.stop());

  it("answers in the order of the requests, whatever each takes", async () => {
    const requests = [30, 0, 10].map((ms, i) => floats([ms], { modelName: "slow", id: `${i}` }));
    const responses = await sendAll(stand, requests);
    expect(summary(responses)).toEqual([
      ["0", true],
      ["1", true],
      ["2", true],
    ]);
  });

  it("runs requests at the same time", async () => {
    const all = Promise.withResolvers<void>();
    let underWay = 0;
    stand.engine.add(servedModel("meeting", config), async function* (request) {
      underWay += 1;
      if (underWay === 10) all.resolve();
      await all.promise;
      yield echo(request);
    });
    const responses = await sendAll(stand, Array(10).fill(floats([1], { modelName: "meeting" })));
    expect(responses).toHaveLength(10);
  });

  it("tells of an error and goes on", async () => {
    const responses = await sendAll(stand, [
      floats([1], { modelName: "nope", id: "a" }),
      floats([1], { id: "b" }),
    ]);
    expect(responses[0]).toEqual({
      errorMessage: "Request for unknown model: 'nope' is not found",
      inferResponse: {
        modelName: "nope",
        id: "a",
        parameters: { triton_final_response: { boolParam: true } },
      },
    });
    expect(summary(responses)[1]).toEqual(["b", true]);
  });

  it("ends with an error's status when the client wants that", async () => {
    const requests = [floats([1], { modelName: "nope" }), floats([1])];
    await expect(sendAll(stand, requests, closing)).rejects.toMatchObject({
      code: status.NOT_FOUND,
      details: "Request for unknown model: 'nope' is not found",
    });
  });

  it("ends with INTERNAL when a message cannot be read", async () => {
    await expect(sendAll(stand, [Buffer.from([0xff])])).rejects.toMatchObject({
      code: status.INTERNAL,
      details: "Unable to parse request",
    });
  });

  it("gives each answer of a decoupled model, and no more", async () => {
    const responses = await sendAll(stand, [
      floats([2], { modelName: "often", id: "two" }),
      floats([0], { modelName: "often", id: "none" }),
    ]);
    expect(summary(responses)).toEqual([
      ["two", false],
      ["two", false],
    ]);
  });

  it("gives an empty final response to those who ask for it", async () => {
    const parameters = { triton_enable_empty_final_response: { boolParam: true } };
    const responses = await sendAll(stand, [
      floats([1], { modelName: "often", id: "r", parameters }),
    ]);
    expect(responses.at(-1)).toEqual({
      inferResponse: {
        modelName: "often",
        id: "r",
        parameters: { triton_final_response: { boolParam: true } },
      },
    });
    expect(responses).toHaveLength(2);
  });

  it("tells of the failure of a decoupled model after its answers", async () => {
    const responses = await sendAll(stand, [floats([-1], { modelName: "often", id: "r" })]);
    expect(summary(responses)).toEqual([
      ["r", false],
      "internal error; the server's log has the cause",
    ]);
  });

  it("takes more requests than may be under way at once", async () => {
    const requests = Array.from({ length: 300 }, (_, i) =>
      floats([1], { modelName: "slow", id: `${i}` }),
    );
    const responses = await sendAll(stand, requests);
    expect(summary(responses)).toEqual(requests.map((_, i) => [`${i}`, true]));
  });

  it("ends at once when nothing was asked", async () => {
    expect(await sendAll(stand, [])).toEqual([]);
  });

  it("reads no further while too many answers wait for the client", async () => {
    let answered = 0;
    stand.engine.add(servedModel("counted", config), (request) => {
      answered += 1;
      return [{ ...echo(request), parameters: new Map([["padding", "x".repeat(100_000)]]) }];
    });
    const stream = stand.stream();
    stream.on("error", () => {});
    stream.on("data", () => stream.pause());
    for (let i = 0; i < 500; i += 1) stream.write(floats([1], { modelName: "counted" }));
    await eventually(() => expect(answered).toBeGreaterThan(0));
    // As long as it would take to answer them all.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(answered).toBeLessThan(300);
    stream.cancel();
  });
});
