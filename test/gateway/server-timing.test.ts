import type { CallOptions, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Call } from "../../protocol/call.ts";
import { encode, type GrpcClient } from "../helpers/grpc-client.ts";
import { echo } from "../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../helpers/served-model.ts";
import type { Answers, MemoryEngine } from "../helpers/memory-engine.ts";
import { GrpcStand } from "./grpc/grpc-stand.ts";
import { HttpStand } from "./http/http-stand.ts";

const config = {
  input: [modelInput("IN0", "TYPE_FP32", [1])],
  output: [modelOutput("OUT0", "TYPE_FP32", [1])],
};

/** As a pool worker that began to load a second before the call came, and was ready just now. */
function coldStart(call: Call): void {
  const now = Date.now();
  const began = now - (performance.now() - call.receivedAt) - 1000;
  const marks = { decidedAt: began, fetchAt: began, loadAt: began };
  call.coldStart = { ...marks, warmupAt: now, readyAt: now };
}

const cold: Answers = (request, call) => {
  coldStart(call);
  return [echo(request)];
};

function addModels(engine: MemoryEngine): void {
  engine.add(servedModel("cold", config), cold);
  engine.add(servedModel("warm", config), (request) => [echo(request)]);
}

/** What comes behind the response to a call of ModelInfer; with a deadline it does not go by the fast lane. */
function trailers(
  client: GrpcClient,
  modelName: string,
  options: CallOptions = {},
): Promise<Metadata> {
  const { promise, resolve } = Promise.withResolvers<Metadata>();
  const inputs = [{ name: "IN0", datatype: "FP32", shape: [1] }];
  const rawInputContents = [Buffer.alloc(4)];
  client
    .makeUnaryRequest(
      "/inference.GRPCInferenceService/ModelInfer",
      (bytes: Buffer) => bytes,
      (bytes) => bytes,
      encode("ModelInferRequest", { modelName, inputs, rawInputContents }),
      options,
      () => {},
    )
    .on("status", ({ metadata }) => resolve(metadata));
  return promise;
}

const text =
  /^schedule;dur=0\.0, spawn;dur=0\.0, fetch;dur=0\.0, load;dur=[\d.]+, warmup;dur=0\.0, first_infer;dur=[\d.]+$/u;

describe("serverTiming", () => {
  let http: HttpStand;
  let grpc: GrpcStand;
  beforeAll(async () => {
    http = await HttpStand.start();
    grpc = await GrpcStand.start();
    addModels(http.engine);
    addModels(grpc.engine);
  });
  afterAll(async () => {
    await http.stop();
    await grpc.stop();
  });

  const body = { inputs: [{ name: "IN0", datatype: "FP32", shape: [1], data: [1] }] };

  it("tells HTTP clients how the time was spent that they waited for a cold start", async () => {
    const infer = await http.infer("cold", body);
    expect(infer.status).toBe(200);
    expect(infer.headers["server-timing"]).toMatch(text);
    expect(infer.headers["content-type"]).toBe("application/json");
    const generate = await http.post("/v2/models/cold/generate", { IN0: 1 });
    expect(generate.headers["server-timing"]).toMatch(text);
  });

  it("says nothing to those who did not wait", async () => {
    expect((await http.infer("warm", body)).headers).not.toHaveProperty("server-timing");
  });

  it("comes behind a gRPC response", async () => {
    const deadline = Date.now() + 60_000;
    for (const options of [{}, { deadline }]) {
      const [timing] = (await trailers(grpc.client, "cold", options)).get("server-timing");
      expect(timing).toMatch(text);
    }
    expect((await trailers(grpc.client, "warm")).get("server-timing")).toEqual([]);
  });
});
