import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { clientError } from "../../gateway/call-log.ts";
import { anonymous } from "../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { collect, type Fields } from "../helpers/grpc-client.ts";
import { eventually } from "../helpers/eventually.ts";
import { modelInput, modelOutput, servedModel } from "../helpers/served-model.ts";
import type { SilentLog } from "../helpers/silent-log.ts";
import { floats, GrpcStand } from "./grpc/grpc-stand.ts";
import { HttpStand } from "./http/http-stand.ts";

let http: HttpStand;
let grpc: GrpcStand;

const tensor = { name: "IN0", datatype: "FP32", shape: [1, 4], data: [1, 2, 3, 4] };
const body = { id: "seven", inputs: [tensor] };
const config = {
  maxBatchSize: 8,
  input: [modelInput("INPUT", "TYPE_FP32", [-1])],
  output: [modelOutput("OUTPUT", "TYPE_FP32", [-1])],
};

function fail(): never {
  throw new InferenceError(StatusCode.Internal, "the model divided by zero");
}

/** The one line that a call leaves at level 1; it is written after the answer. */
async function onlyLine(log: SilentLog): Promise<unknown> {
  await eventually(() => expect(log.verboseLines).toHaveLength(1));
  return log.verboseLines[0]?.[1];
}

beforeAll(async () => {
  [http, grpc] = await Promise.all([HttpStand.start(), GrpcStand.start()]);
  http.engine.add(servedModel("fails", config), fail);
  grpc.engine.add(servedModel("fails", config), fail);
});
beforeEach(() => {
  for (const { log } of [http, grpc]) {
    log.update({ logVerboseLevel: 1 });
    log.verboseLines.length = 0;
    log.errors.length = 0;
  }
});
afterAll(() => Promise.all([http.stop(), grpc.stop()]));

const answered = { outcome: "OK", microseconds: expect.any(Number) };

describe("the log of calls", () => {
  it("has a line for an inference over HTTP", async () => {
    await http.infer("batch", body);
    expect(await onlyLine(http.log)).toEqual({
      transport: "http",
      method: "POST /v2/models/batch/infer",
      requestId: "seven",
      model: "batch",
      ...answered,
    });
  });

  it("has a line for an inference over gRPC", async () => {
    await grpc.infer(floats([1], { id: "eight", modelVersion: "1" }));
    expect(await onlyLine(grpc.log)).toEqual({
      transport: "grpc",
      method: "/inference.GRPCInferenceService/ModelInfer",
      requestId: "eight",
      model: "echo_FP32",
      version: "1",
      ...answered,
    });
  });

  it("has a line for each request of a stream", async () => {
    const stream = grpc.stream();
    stream.write(floats([1], { id: "a" }));
    stream.write(floats([1], { id: "b", modelName: "nope" }));
    stream.end();
    await collect(stream);
    const outcomes = grpc.log.verboseLines.map(([, line]) => [line["requestId"], line["outcome"]]);
    expect(outcomes).toEqual([
      ["a", "OK"],
      ["b", "NOT_FOUND"],
    ]);
  });

  it("has a line with code and text for a call that fails by the client's doing", async () => {
    await http.infer("nothing", body);
    expect(await onlyLine(http.log)).toMatchObject({
      model: "nothing",
      outcome: "NOT_FOUND",
      error: "Request for unknown model: 'nothing' is not found",
    });
    expect(http.log.errors).toEqual([]);
  });

  it.each(["/v2", "/v2/health/live", "/v2/models/batch/config", "/v2/logging"])(
    "has a line for GET %s",
    async (path) => {
      await http.get(path);
      expect(await onlyLine(http.log)).toMatchObject({ method: `GET ${path}`, outcome: "OK" });
    },
  );

  it.each<[string, Fields]>([
    ["ModelMetadata", { name: "echo_FP32" }],
    ["RepositoryModelLoad", { modelName: "echo_FP32" }],
  ])("has a line for %s", async (method, request) => {
    await grpc.ask(method, request);
    expect(await onlyLine(grpc.log)).toMatchObject({ model: "echo_FP32", outcome: "OK" });
  });

  it("has one line for a stream of events that breaks off", async () => {
    await http.post("/v2/models/fails/generate_stream", { INPUT: [1] });
    expect(await onlyLine(http.log)).toMatchObject({ model: "fails", outcome: "INTERNAL" });
  });

  it("has no line at level 0, also when that is set while the server runs", async () => {
    await http.post("/v2/logging", { log_verbose_level: 0 });
    await http.infer("batch", body);
    grpc.log.update({ logVerboseLevel: 0 });
    await grpc.infer(floats([1]));
    await grpc.ask("ServerLive", {});
    expect([...http.log.verboseLines, ...grpc.log.verboseLines]).toEqual([]);
  });

  it("cuts what a client may make long", async () => {
    await http.infer("batch", { ...body, id: "x".repeat(10_000) });
    expect(await onlyLine(http.log)).toMatchObject({ requestId: `${"x".repeat(256)}…` });
  });
});

describe("clientError", () => {
  it("logs no error for a body that is no JSON, which the reference calls internal", async () => {
    expect((await http.infer("batch", "{")).status).toBe(500);
    expect(await onlyLine(http.log)).toMatchObject({ model: "batch", outcome: "INTERNAL" });
    expect(http.log.errors).toEqual([]);
  });

  it("does not repeat what was logged where it happened", () => {
    const { log } = http;
    const cause = new InferenceError(StatusCode.InvalidArg, "no such op");
    const error = new InferenceError(StatusCode.Internal, "failed to load 'm'", { cause });
    const call = { transport: "http", method: "", requestId: "", model: "m", version: "" } as const;
    const fields = { ...call, principal: anonymous, receivedAt: 0 };
    expect(clientError(error, log, fields)).toBe(error);
    expect(log.errors).toEqual([]);
  });

  it("logs an internal error without a cause, with model and request, on both wires", async () => {
    await http.infer("fails", { ...body, inputs: [{ ...tensor, name: "INPUT" }] });
    await expect(grpc.infer(floats([1], { modelName: "fails", id: "nine" }))).rejects.toThrow(
      "the model divided by zero",
    );
    const about = { model: "fails", method: expect.any(String) };
    expect(http.log.errors).toEqual([
      ["the model divided by zero", { transport: "http", requestId: "seven", ...about }],
    ]);
    expect(grpc.log.errors).toEqual([
      ["the model divided by zero", { transport: "grpc", requestId: "nine", ...about }],
    ]);
  });
});
