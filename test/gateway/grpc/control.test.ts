import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import { decode } from "../../helpers/grpc-client.ts";
import { GrpcStand } from "./grpc-stand.ts";
import type { Fields } from "../../helpers/grpc-client.ts";

let stand: GrpcStand;

/** A codec that leaves bytes as they are. */
function same(message: Buffer): Buffer {
  return message;
}

function settings(given: Fields): Promise<Fields> {
  return stand.ask("LogSettings", { settings: given });
}

beforeAll(async () => {
  stand = await GrpcStand.start();
});
afterAll(() => stand.stop());

describe("controlMethods", () => {
  it("tells that the server is live and ready", async () => {
    expect(await stand.ask("ServerLive", {})).toEqual({ live: true });
    expect(await stand.ask("ServerReady", {})).toEqual({ ready: true });
  });

  it("describes the server", async () => {
    expect(await stand.ask("ServerMetadata", {})).toEqual({
      name: "tidepool",
      version: "1",
      extensions: ["logging"],
    });
  });

  it("tells which models are ready", async () => {
    expect(await stand.ask("ModelReady", { name: "echo_FP32" })).toEqual({ ready: true });
    expect(await stand.ask("ModelReady", { name: "nope" })).toEqual({});
    expect(await stand.ask("ModelReady", { name: "echo_FP32", version: "2" })).toEqual({});
  });

  it("describes a model", async () => {
    expect(await stand.ask("ModelMetadata", { name: "echo_FP32" })).toEqual({
      name: "echo_FP32",
      versions: ["1"],
      platform: "memory",
      inputs: [{ name: "INPUT", datatype: "FP32", shape: [-1, 16] }],
    });
    const unknown = stand.ask("ModelMetadata", { name: "nope" });
    await expect(unknown).rejects.toMatchObject({ code: status.NOT_FOUND });
  });

  it("shows a model's config", async () => {
    const { config } = await stand.ask("ModelConfig", { name: "echo_FP32" });
    expect(config).toEqual({
      name: "echo_FP32",
      backend: "echo",
      maxBatchSize: 8,
      input: [{ name: "INPUT", dataType: "TYPE_FP32", dims: [-1] }],
      output: [{ name: "OUTPUT", dataType: "TYPE_FP32", dims: [-1] }],
    });
  });

  it("gives a model's statistics", async () => {
    const { modelStats } = await stand.ask("ModelStatistics", { name: "echo_FP32" });
    expect(modelStats).toMatchObject([
      {
        name: "echo_FP32",
        version: "1",
        lastInference: 1_763_700_000_000,
        inferenceCount: 4,
        inferenceStats: { success: { count: 1, ns: 1000 }, computeInfer: { ns: 2 ** 40 } },
        batchStats: [{ batchSize: 4, computeInput: { count: 1 } }],
        responseStats: { "0": { emptyResponse: { count: 1, ns: 1000 } } },
      },
    ]);
  });

  it("answers a message it cannot read with INTERNAL", async () => {
    await expect(stand.ask("ModelReady", Buffer.from([0x0a, 0x7f]))).rejects.toMatchObject({
      code: status.INTERNAL,
      details: "Unable to parse request",
    });
  });

  it("does not know methods of other services", async () => {
    const { promise, reject } = Promise.withResolvers<never>();
    stand.client.makeUnaryRequest("/a.B/C", same, same, Buffer.alloc(0), reject);
    await expect(promise).rejects.toMatchObject({ code: status.UNIMPLEMENTED });
  });
});

describe("repositoryMethods", () => {
  it("lists the repository", async () => {
    const { models } = await stand.ask("RepositoryIndex", {});
    expect(models).toContainEqual({ name: "echo_FP32", version: "1", state: "READY" });
    expect(models).toContainEqual({ name: "never-loaded" });
    const ready = await stand.ask("RepositoryIndex", { ready: true });
    expect(ready["models"]).not.toContainEqual({ name: "never-loaded" });
  });

  it("loads a model with a config and files of its own", async () => {
    const parameters = {
      config: { stringParam: "{}" },
      "file:1/model.onnx": { bytesParam: Buffer.from("onnx") },
    };
    await stand.ask("RepositoryModelLoad", { modelName: "new", parameters });
    const files = new Map([["1/model.onnx", Buffer.from("onnx")]]);
    expect(stand.engine.loaded.at(-1)).toEqual(["new", { config: "{}", files }]);
    await stand.ask("RepositoryModelLoad", { modelName: "plain" });
    expect(stand.engine.loaded.at(-1)).toEqual(["plain", {}]);
  });

  it.each([
    [
      "config",
      { int64Param: 1 },
      "invalid value type for load parameter 'config', expected string_param.",
    ],
    [
      "file:1/m",
      { stringParam: "x" },
      "invalid value type for load parameter 'file:1/m', expected bytes_param.",
    ],
    ["foo", { stringParam: "x" }, "unrecognized load parameter 'foo'."],
  ])("refuses a load parameter %s of %j", async (name, value, details) => {
    const request = { modelName: "m", parameters: { [name]: value } };
    await expect(stand.ask("RepositoryModelLoad", request)).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details,
    });
  });

  it("unloads a model, with those it is composed of when asked to", async () => {
    await stand.ask("RepositoryModelUnload", { modelName: "m" });
    expect(stand.engine.unloaded.at(-1)).toEqual(["m", { unloadDependents: false }]);
    const parameters = { unload_dependents: { boolParam: true } };
    await stand.ask("RepositoryModelUnload", { modelName: "m", parameters });
    expect(stand.engine.unloaded.at(-1)).toEqual(["m", { unloadDependents: true }]);
    const wrong = { modelName: "m", parameters: { unload_dependents: { stringParam: "true" } } };
    await expect(stand.ask("RepositoryModelUnload", wrong)).rejects.toMatchObject({
      details: "invalid value type for 'unload_dependents' parameter, expected bool_param.",
    });
  });

  it.each(["RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload"])(
    "knows one repository only (%s)",
    async (method) => {
      await expect(stand.ask(method, { repositoryName: "x" })).rejects.toMatchObject({
        code: status.UNIMPLEMENTED,
        details: "'repository_name' specification is not supported",
      });
    },
  );

  it("passes an engine's refusal on", async () => {
    const refusal = new InferenceError(StatusCode.Unavailable, "polling is enabled");
    stand.engine.load = () => Promise.reject(refusal);
    await expect(stand.ask("RepositoryModelLoad", { modelName: "m" })).rejects.toMatchObject({
      code: status.UNAVAILABLE,
      details: "polling is enabled",
    });
  });
});

describe("logSettingsMethod", () => {
  it("tells the settings", async () => {
    expect(await settings({})).toEqual({
      settings: {
        log_file: { stringParam: "" },
        log_info: { boolParam: true },
        log_warning: { boolParam: true },
        log_error: { boolParam: true },
        log_verbose_level: { uint32Param: 0 },
        log_format: { stringParam: "default" },
      },
    });
  });

  it("changes them, and ignores what it does not know", async () => {
    const changed = await settings({
      log_info: { boolParam: false },
      log_verbose_level: { uint32Param: 2 },
      log_format: { stringParam: "ISO8601" },
      log_color: { stringParam: "red" },
    });
    expect(changed["settings"]).toMatchObject({ log_info: { boolParam: false } });
    expect(stand.log.get()).toMatchObject({
      logInfo: false,
      logWarning: true,
      logVerboseLevel: 2,
      logFormat: "ISO8601",
    });
  });

  it.each([
    ["log_error", { stringParam: "x" }, "expect boolean for 'log_error'"],
    ["log_verbose_level", { boolParam: true }, "expect int32 for 'log_verbose_level'"],
    ["log_format", { boolParam: true }, "expect string for 'log_format'"],
    ["log_format", { stringParam: "x" }, "invalid argument for log_format, got: x"],
  ])("refuses %s of %j, and then changes nothing", async (name, value, details) => {
    const before = stand.log.get();
    const request = settings({ log_warning: { boolParam: false }, [name]: value });
    await expect(request).rejects.toMatchObject({ code: status.INVALID_ARGUMENT, details });
    expect(stand.log.get()).toEqual(before);
  });

  it("does not let the log file be moved", async () => {
    await expect(settings({ log_file: { stringParam: "x" } })).rejects.toMatchObject({
      code: status.UNIMPLEMENTED,
      details: "log file location can not be updated through network protocol",
    });
  });
});

describe("healthMethods", () => {
  it("tells whether the server is ready, whatever the service", async () => {
    const check = (): Promise<Fields> =>
      stand.ask("grpc.health.v1.Health/Check", { service: "inference.GRPCInferenceService" });
    expect(await check()).toEqual({ status: "SERVING" });
    stand.engine.isReady = false;
    expect(await check()).toEqual({ status: "NOT_SERVING" });
    stand.engine.isReady = true;
  });

  it("tells a watcher of every change", async () => {
    const watch = stand.client.makeServerStreamRequest(
      "/grpc.health.v1.Health/Watch",
      (message: Buffer) => message,
      (bytes) => decode("grpc.health.v1.HealthCheckResponse", bytes),
      Buffer.alloc(0),
    );
    watch.on("error", () => {});
    const seen = watch[Symbol.asyncIterator]();
    expect((await seen.next()).value).toEqual({ status: "SERVING" });
    stand.engine.isReady = false;
    expect((await seen.next()).value).toEqual({ status: "NOT_SERVING" });
    watch.cancel();
    stand.engine.isReady = true;
  });
});
