import { Metadata, status } from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { InferenceError } from "../../../protocol/error.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { encode } from "../../helpers/grpc-client.ts";
import { floats, GrpcStand } from "./grpc-stand.ts";

/** A codec that leaves bytes as they are. */
function same(message: Buffer): Buffer {
  return message;
}

const forwarding = { headerForwardPattern: /x-.*/u };

describe.each([
  ["in the fast lane", {}],
  ["through grpc-js", forwarding],
])("ModelInfer %s", (_way, options) => {
  let stand: GrpcStand;
  beforeAll(async () => {
    stand = await GrpcStand.start(options);
  });
  afterAll(() => stand.stop());

  it("answers with raw contents, the version that ran and the request's id", async () => {
    const response = await stand.infer(floats([1, 2.5], { id: "abc" }));
    expect(response).toEqual({
      modelName: "echo_FP32",
      modelVersion: "1",
      id: "abc",
      outputs: [{ name: "OUTPUT", datatype: "FP32", shape: [1, 2] }],
      rawOutputContents: [Buffer.from(new Float32Array([1, 2.5]).buffer)],
    });
  });

  it("takes typed contents", async () => {
    const response = await stand.infer({
      modelName: "echo_INT64",
      inputs: [
        {
          name: "INPUT",
          datatype: "INT64",
          shape: [1, 2],
          contents: { int64Contents: ["-9223372036854775808", "9007199254740993"] },
        },
      ],
    });
    const expected = new BigInt64Array([-(2n ** 63n), 2n ** 53n + 1n]);
    expect(response["rawOutputContents"]).toEqual([Buffer.from(expected.buffer)]);
  });

  it("answers an unknown model with NOT_FOUND", async () => {
    await expect(stand.infer(floats([1], { modelName: "nope" }))).rejects.toMatchObject({
      code: status.NOT_FOUND,
      details: "Request for unknown model: 'nope' is not found",
    });
  });

  it("answers a request that does not fit the model with INVALID_ARGUMENT", async () => {
    const request = floats([1], { rawInputContents: [Buffer.alloc(3)] });
    await expect(stand.infer(request)).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details:
        "[request id: <id_unknown>] input byte size mismatch for input 'INPUT' for model 'echo_FP32'. Expected 4, got 3",
    });
  });

  it.each([
    ["garbage", Buffer.from([0xff, 0xff, 0xff, 0xff])],
    ["a truncated message", encode("ModelInferRequest", floats([1])).subarray(0, -1)],
  ])("answers %s with INTERNAL", async (_what, bytes) => {
    await expect(stand.infer(bytes)).rejects.toMatchObject({
      code: status.INTERNAL,
      details: "Unable to parse request",
    });
  });

  it("keeps an unexpected error's text in the log", async () => {
    const config = {
      input: [modelInput("INPUT", "TYPE_FP32", [1, 1])],
      output: [modelOutput("OUTPUT", "TYPE_FP32", [1, 1])],
    };
    const bug = new Error("a bug with a secret");
    stand.engine.add(servedModel("buggy", config), () => {
      throw bug;
    });
    await expect(stand.infer(floats([1], { modelName: "buggy" }))).rejects.toMatchObject({
      code: status.INTERNAL,
      details: "internal error; the server's log has the cause",
    });
    expect(stand.log.errors.at(-1)?.[1]).toMatchObject({ model: "buggy", err: bug });
  });

  it("refuses a decoupled model", async () => {
    const config = {
      modelTransactionPolicy: { decoupled: true },
      input: [modelInput("INPUT", "TYPE_FP32", [1, 1])],
    };
    stand.engine.add(servedModel("often", config), () => []);
    await expect(stand.infer(floats([1], { modelName: "often" }))).rejects.toMatchObject({
      code: status.UNIMPLEMENTED,
      details: "ModelInfer RPC doesn't support models with decoupled transaction policy",
    });
  });

  it("carries a text beyond Latin-1 in a status", async () => {
    await expect(stand.infer(floats([1], { modelName: "модель\n%" }))).rejects.toMatchObject({
      details: "Request for unknown model: 'модель\n%' is not found",
    });
  });

  it("cuts a status that no header could carry", async () => {
    const request = floats([1], { modelName: "m".repeat(100_000) });
    await expect(stand.infer(request)).rejects.toMatchObject({ code: status.NOT_FOUND });
  });
});

describe("modelInfer", () => {
  let stand: GrpcStand;
  beforeAll(async () => {
    stand = await GrpcStand.start(forwarding);
  });
  afterAll(() => stand.stop());

  it("passes parameters and matching headers on to the model", async () => {
    const metadata = new Metadata();
    metadata.set("x-tenant", "blue");
    metadata.set("other", "red");
    const parameters = { depth: { int64Param: -3 }, share: { doubleParam: 0.5 } };
    const response = await stand.infer(floats([1], { parameters }), metadata);
    expect(response["parameters"]).toEqual({
      depth: { int64Param: -3 },
      share: { doubleParam: 0.5 },
      "x-tenant": { stringParam: "blue" },
    });
  });

  it("refuses a header that would pose as a reserved parameter", async () => {
    const metadata = new Metadata();
    metadata.set("triton_x-final", "1");
    await expect(stand.infer(floats([1]), metadata)).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: "Header 'triton_x-final' is reserved for Triton usage and cannot be forwarded.",
    });
  });
});

describe("a call that nobody waits for", () => {
  let stand: GrpcStand;
  let asked: Promise<void>;
  let cancelled: Promise<InferenceError>;
  beforeEach(async () => {
    stand = await GrpcStand.start();
    await stand.ask("ServerLive", {});
    const started = Promise.withResolvers<void>();
    asked = started.promise;
    const gone = Promise.withResolvers<InferenceError>();
    cancelled = gone.promise;
    const config = {
      input: [modelInput("INPUT", "TYPE_FP32", [1, 1])],
      output: [modelOutput("OUTPUT", "TYPE_FP32", [1, 1])],
    };
    stand.engine.add(servedModel("sleepy", config), async function* (_request, call) {
      const { promise, reject } = Promise.withResolvers<never>();
      call.onCancel((reason) => {
        gone.resolve(reason);
        reject(reason);
      });
      started.resolve();
      yield await promise;
    });
  });
  afterEach(() => stand.stop());

  it("lets go of its request when its deadline has passed", async () => {
    const request = floats([1], { modelName: "sleepy" });
    await expect(stand.ask("ModelInfer", request, { deadline: 300 })).rejects.toMatchObject({
      code: status.DEADLINE_EXCEEDED,
    });
    expect(await cancelled).toMatchObject({ code: "CANCELLED" });
  });

  it("lets go of its request when the client hangs up", async () => {
    const bytes = encode("ModelInferRequest", floats([1], { modelName: "sleepy" }));
    const path = "/inference.GRPCInferenceService/ModelInfer";
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const call = stand.client.makeUnaryRequest(path, same, same, bytes, resolve);
    await asked;
    call.cancel();
    expect(await promise).toMatchObject({ code: status.CANCELLED });
    expect(await cancelled).toMatchObject({ code: "CANCELLED" });
  });

  it("lets go of every request of a stream that is cancelled", async () => {
    const stream = stand.stream();
    stream.on("error", () => {});
    stream.write(floats([1]));
    stream.write(floats([1], { modelName: "sleepy" }));
    stream.once("data", () => stream.cancel());
    expect(await cancelled).toMatchObject({ code: "CANCELLED" });
  });
});
