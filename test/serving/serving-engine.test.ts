import { describe, expect, it } from "vitest";
import { ServingEngine } from "../../serving/serving-engine.ts";
import type { RunningVersion } from "../../serving/running-version.ts";
import { anonymous, Call } from "../../protocol/call.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import type { StreamedResponse } from "../../protocol/inference.ts";
import { turn } from "../helpers/fake-clock.ts";
import { HandHeldInstances } from "../helpers/hand-held-instances.ts";
import { InstantInstances } from "../helpers/instant-instances.ts";
import { requestFor, responseTo } from "../helpers/requests.ts";
import { ModelsInMemory, runningVersion } from "../helpers/running-models.ts";
import { modelInput, modelOutput, servedModel } from "../helpers/served-model.ts";

function modelNamed(name: string, version = "1", dims: readonly number[] = [4]): ServedModel {
  const config = {
    backend: "onnxruntime",
    platform: "onnxruntime_onnx",
    maxBatchSize: 8,
    input: [modelInput("IN", "TYPE_FP32", dims)],
    output: [modelOutput("OUT", "TYPE_STRING", [-1, 2])],
  };
  return { ...servedModel(name, config), version };
}

function instant(name: string, version = "1"): RunningVersion {
  return runningVersion(modelNamed(name, version), new InstantInstances());
}

function engineOf(models: ModelsInMemory, strictReadiness = true): ServingEngine {
  return new ServingEngine(models, { strictReadiness });
}

function call(): Call {
  return new Call(anonymous, 0);
}

/** An engine with one model on instances in the hands of the test. */
function handHeld() {
  const instances = new HandHeldInstances();
  const version = runningVersion(modelNamed("m"), instances);
  const models = new ModelsInMemory(version);
  return { instances, models, engine: engineOf(models), request: requestFor(version.model) };
}

async function all(stream: AsyncIterable<StreamedResponse>): Promise<StreamedResponse[]> {
  const responses = [];
  for await (const response of stream) responses.push(response);
  return responses;
}

describe("ServingEngine", () => {
  it("answers a request with the response of its model", async () => {
    const version = instant("m");
    const engine = engineOf(new ModelsInMemory(version));
    const request = requestFor(version.model, [2, 4], { id: "7" });
    expect(await engine.infer(request, call())).toEqual(responseTo(request));
    const only = { response: responseTo(request), final: true };
    expect(await all(engine.stream(request, call()))).toEqual([only]);
  });

  it.each([0, 2])("refuses %d responses where one is expected, and streams them", async (count) => {
    const { engine, instances, request } = handHeld();
    const answer = async (): Promise<void> => {
      await turn();
      const execution = instances.executions.at(-1);
      const sink = execution?.requests[0]?.sink;
      for (let i = 0; i < count; i++) sink?.send(responseTo(request), false);
      sink?.send(undefined, true);
    };
    const single = engine.infer(request, call()).catch((error: unknown) => error);
    await answer();
    expect(await single).toMatchObject({
      code: "INTERNAL",
      message: `expected a single response, got ${count}`,
    });
    instances.executions[0]?.finish();
    const streamed = all(engine.stream(request, call()));
    await turn();
    await answer();
    expect(await streamed).toHaveLength(count);
  });

  it("streams each response as it comes, and then the error", async () => {
    const { engine, instances, request } = handHeld();
    const responses = engine.stream(request, call())[Symbol.asyncIterator]();
    const first = responses.next();
    await turn();
    const sink = instances.executions[0]?.requests[0]?.sink;
    sink?.send(responseTo(request), false);
    expect(await first).toMatchObject({ value: { response: responseTo(request), final: false } });
    const second = responses.next();
    sink?.send(responseTo(request), true);
    expect(await second).toMatchObject({ value: { final: true } });
    expect(await responses.next()).toMatchObject({ done: true });
  });

  it("cancels a request whose stream nobody reads to its end", async () => {
    const { engine, instances, request } = handHeld();
    const abandoned = call();
    const responses = engine.stream(request, abandoned)[Symbol.asyncIterator]();
    const first = responses.next();
    await turn();
    instances.executions[0]?.requests[0]?.sink.send(responseTo(request), false);
    await first;
    await responses.return?.();
    expect(abandoned.cancelled?.code).toBe("CANCELLED");
  });

  it("rejects when the model is not there", async () => {
    const version = instant("m");
    const models = new ModelsInMemory(version);
    const engine = engineOf(models);
    const request = requestFor(version.model);
    models.loaded.pop();
    const rejection = { code: "NOT_FOUND", message: "Request for unknown model: 'm' is not found" };
    await expect(engine.infer(request, call())).rejects.toMatchObject(rejection);
    await expect(all(engine.stream(request, call()))).rejects.toMatchObject(rejection);
    await expect(engine.metadata("m", "")).rejects.toMatchObject(rejection);
  });

  it("checks a request again when a reload came between", async () => {
    const old = instant("m");
    const models = new ModelsInMemory(old);
    const engine = engineOf(models);
    const request = requestFor(old.model);
    const fits = instant("m", "2");
    models.loaded[0] = fits;
    expect(await engine.infer(request, call())).toMatchObject({ modelVersion: "2" });
    models.loaded[0] = runningVersion(modelNamed("m", "3", [5]), new InstantInstances());
    await expect(engine.infer(request, call())).rejects.toMatchObject({ code: "INVALID_ARG" });
  });

  it("says of a model that is missing or has no healthy instance that it is not ready", async () => {
    const version = instant("m");
    const dead = Object.assign(new InstantInstances(), { healthy: false });
    const models = new ModelsInMemory(version, runningVersion(modelNamed("ill"), dead));
    const engine = engineOf(models);
    expect(await engine.modelReady("m", "")).toBe(true);
    expect(await engine.modelReady("m", "9")).toBe(false);
    expect(await engine.modelReady("other", "")).toBe(false);
    expect(await engine.modelReady("ill", "")).toBe(false);
  });

  it("describes a model with its batch dimension and all versions that answer", async () => {
    const engine = engineOf(
      new ModelsInMemory(instant("m", "2"), instant("m", "10"), instant("n")),
    );
    const described = {
      name: "m",
      versions: ["2", "10"],
      platform: "onnxruntime_onnx",
      inputs: [{ name: "IN", datatype: "FP32", shape: [-1, 4] }],
      outputs: [{ name: "OUT", datatype: "BYTES", shape: [-1, -1, 2] }],
    };
    expect(await engine.metadata("m", "")).toEqual(described);
    expect(await engine.metadata("m", "2")).toEqual({ ...described, versions: ["2"] });
  });

  it("gives statistics of all models, one model or one version", async () => {
    const engine = engineOf(
      new ModelsInMemory(instant("m", "9"), instant("m", "10"), instant("n")),
    );
    const labels = async (name: string, version: string): Promise<string[]> =>
      (await engine.statistics(name, version)).map((one) => `${one.name}/${one.version}`);
    expect(await labels("", "")).toEqual(["m/9", "m/10", "n/1"]);
    expect(await labels("m", "")).toEqual(["m/9", "m/10"]);
    expect(await labels("m", "10")).toEqual(["m/10"]);
    await expect(engine.statistics("x", "")).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: "requested model 'x' is not available",
    });
    await expect(engine.statistics("m", "3")).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: "requested model version is not available for model 'm'",
    });
  });

  it("finishes what it has and refuses the rest once it closes", async () => {
    const { engine, instances, models, request } = handHeld();
    const answered = engine.infer(request, call());
    await turn();
    const closed = engine.close(new AbortController().signal);
    const refusal = { code: "UNAVAILABLE", message: "the server is shutting down" };
    await expect(engine.infer(request, call())).rejects.toMatchObject(refusal);
    expect(() => engine.model("m", "")).toThrow("the server is shutting down");
    expect(await engine.ready()).toBe(false);
    expect(models.closed).toBe(0);
    instances.executions[0]?.finish();
    await expect(answered).resolves.toEqual(responseTo(request));
    await closed;
    expect(models.closed).toBe(1);
  });

  it("gives up closing when the signal says so", async () => {
    const { engine, models, request } = handHeld();
    void engine.infer(request, call());
    await turn();
    const giveUp = new AbortController();
    const closed = engine.close(giveUp.signal);
    giveUp.abort();
    await closed;
    expect(models.closed).toBe(0);
  });

  it("is ready while its models are, or always when readiness is not strict", async () => {
    const models = new ModelsInMemory(instant("m"));
    expect(await engineOf(models).ready()).toBe(true);
    models.loaded.pop();
    expect(await engineOf(models).ready()).toBe(false);
    expect(await engineOf(models, false).ready()).toBe(true);
  });
});
