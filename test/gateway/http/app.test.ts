import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { errorOf } from "../../helpers/http-client.ts";
import { HttpStand } from "./http-stand.ts";

let stand: HttpStand;

beforeAll(async () => {
  stand = await HttpStand.start();
});
afterAll(() => stand.stop());

describe("createHttpApp", () => {
  it("answers health with a status and nothing else", async () => {
    const live = await stand.get("/v2/health/live");
    expect([live.status, live.text, live.headers["content-length"]]).toEqual([200, "", "0"]);
    expect((await stand.get("/v2/health/ready")).status).toBe(200);
    stand.engine.isReady = false;
    expect((await stand.get("/v2/health/ready")).status).toBe(400);
    stand.engine.isReady = true;
  });

  it("says whether a model is ready", async () => {
    expect((await stand.get("/v2/models/batch/ready")).status).toBe(200);
    expect((await stand.get("/v2/models/batch/versions/1/ready")).status).toBe(200);
    for (const path of ["nothing", "batch/versions/9"]) {
      const answer = await stand.get(`/v2/models/${path}/ready`);
      expect(answer.status).toBe(400);
      expect(errorOf(answer)).toBe("Model version not ready");
    }
  });

  it("describes the server and its models", async () => {
    expect((await stand.get("/v2")).text).toBe(
      '{"name":"tidepool","version":"1","extensions":["logging"]}',
    );
    const metadata = await stand.get("/v2/models/batch");
    expect(metadata.headers["content-type"]).toBe("application/json");
    expect(JSON.parse(metadata.text)).toMatchObject({ name: "batch", versions: ["1"] });
    expect((await stand.get("/v2/models/batch/versions/2")).status).toBe(404);
    const config = JSON.parse((await stand.get("/v2/models/batch/config")).text);
    expect(config).toMatchObject({ max_batch_size: 8, input: [{ data_type: "TYPE_FP32" }] });
  });

  it("shows statistics in the reference's spelling", async () => {
    const [entry] = JSON.parse((await stand.get("/v2/models/batch/stats")).text).model_stats;
    expect(Object.keys(entry)).toEqual([
      "name",
      "version",
      "last_inference",
      "inference_count",
      "execution_count",
      "inference_stats",
      "response_stats",
      "batch_stats",
      "memory_usage",
    ]);
    expect(entry.inference_stats.compute_infer).toEqual({ count: 1, ns: 2 ** 40 });
    expect(entry.response_stats["0"].empty_response).toEqual({ count: 1, ns: 1000 });
    expect(entry.batch_stats[0].batch_size).toBe(4);
  });

  it("finds a model whose name is escaped in the path", async () => {
    expect((await stand.get("/v2/models/b%61tch")).status).toBe(200);
  });

  it.each(["/", "/v2/", "/v2/models", "/v2/models/batch/", "/v2/models/batch/versions/x", "/V2"])(
    "does not know %s",
    async (path) => {
      const answer = await stand.get(path);
      expect(answer.status).toBe(404);
      expect(errorOf(answer)).toBe("Not Found");
    },
  );

  it.each([
    ["POST", "/v2"],
    ["POST", "/v2/health/live"],
    ["POST", "/v2/models/batch/stats"],
    ["GET", "/v2/models/batch/infer"],
    ["GET", "/v2/repository/index"],
    ["PUT", "/v2/logging"],
    ["OPTIONS", "/v2/models/batch/infer"],
  ])("refuses %s %s", async (method, path) => {
    const answer = await stand.ask(method, path);
    expect(answer.status).toBe(405);
    expect(errorOf(answer)).toBe("Method Not Allowed");
  });

  it("answers HEAD with 405 and no body", async () => {
    for (const path of ["/v2", "/v2/models/batch/infer"]) {
      const answer = await stand.ask("HEAD", path);
      expect([answer.status, answer.text]).toEqual([405, ""]);
    }
  });
});

describe("the repository over HTTP", () => {
  beforeEach(() => {
    stand.engine.loaded.length = 0;
    stand.engine.unloaded.length = 0;
  });

  it("lists models, or only those that are ready", async () => {
    const all = JSON.parse((await stand.post("/v2/repository/index")).text);
    expect(all).toContainEqual({ name: "never-loaded" });
    expect(all).toContainEqual({ name: "batch", version: "1", state: "READY" });
    const ready = await stand.post("/v2/repository/x/index", { ready: true });
    expect(ready.text).not.toContain("never-loaded");
    expect(errorOf(await stand.post("/v2/repository/index", { ready: 1 }))).toBe(
      "attempt to access JSON non-boolean as boolean",
    );
  });

  it("loads a model, with a config and files of the client's", async () => {
    const plain = await stand.post("/v2/repository/models/m/load");
    expect([plain.status, plain.text]).toEqual([200, ""]);
    const parameters = { config: "{}", "file:1/model.onnx": Buffer.from("abc").toString("base64") };
    await stand.post("/v2/repository/models/m/load", { parameters });
    expect(stand.engine.loaded).toEqual([
      ["m", {}],
      ["m", { config: "{}", files: new Map([["1/model.onnx", Buffer.from("abc")]]) }],
    ]);
  });

  it.each([
    [{ parameters: 5 }, 500, "attempt to get members for non-object"],
    [{ parameters: { config: 5 } }, 500, "attempt to access JSON non-string as string"],
    [{ parameters: { other: "x" } }, 400, "unrecognized load parameter 'other'."],
    [
      { parameters: { "file:1/m": "a!" } },
      400,
      "Failed to decode base64 of load parameter 'file:1/m'",
    ],
  ])("refuses to load with %j", async (body, status, text) => {
    const answer = await stand.post("/v2/repository/models/m/load", body);
    expect([answer.status, errorOf(answer)]).toEqual([status, text]);
    expect(stand.engine.loaded).toEqual([]);
  });

  it("forgets the cached answers of a model", async () => {
    const answer = await stand.post("/v2/models/m/cache/flush");
    expect([answer.status, answer.text]).toEqual([200, ""]);
    expect(stand.engine.flushed).toEqual(["m"]);
    expect((await stand.get("/v2/models/m/cache/flush")).status).toBe(405);
  });

  it("unloads a model, with those it is composed of where it is told to", async () => {
    await stand.post("/v2/repository/models/m/unload");
    await stand.post("/v2/repository/models/m/unload", { parameters: { unload_dependents: true } });
    expect(stand.engine.unloaded).toEqual([
      ["m", { unloadDependents: false }],
      ["m", { unloadDependents: true }],
    ]);
  });

  it("refuses the name of a repository", async () => {
    const answer = await stand.post("/v2/repository/x/models/m/load");
    expect([answer.status, errorOf(answer)]).toEqual([
      501,
      "'repository_name' specification is not supported",
    ]);
  });
});

describe("log settings over HTTP", () => {
  it("shows and changes them", async () => {
    const shown = await stand.get("/v2/logging");
    expect(shown.text).toBe(
      '{"log_file":"","log_info":true,"log_warning":true,"log_error":true,"log_verbose_level":0,"log_format":"default"}',
    );
    const changes = {
      log_info: false,
      log_verbose_level: 2,
      log_format: "ISO8601",
      log_error: null,
    };
    const changed = JSON.parse((await stand.post("/v2/logging", changes)).text);
    expect(changed).toMatchObject({ ...changes, log_error: true });
    expect(stand.log.get()).toMatchObject({ logInfo: false, logVerboseLevel: 2 });
  });

  it.each([
    [{ log_file: "x" }, 501, "log file location can not be updated through network protocol"],
    [{ log_info: "x" }, 500, "attempt to access JSON non-boolean as boolean"],
    [
      { log_verbose_level: -1 },
      500,
      "attempt to access JSON non-unsigned-integer as unsigned-integer",
    ],
    [
      { log_verbose_level: 2 ** 32 },
      400,
      "log_verbose_level: given 4294967296, expected at most 4294967295",
    ],
    [{ log_format: "x" }, 400, "invalid argument for --log_format, got: x"],
  ])("refuses %j and changes nothing", async (body, status, text) => {
    const before = stand.log.get();
    const answer = await stand.post("/v2/logging", { log_warning: false, ...body });
    expect([answer.status, errorOf(answer)]).toEqual([status, text]);
    expect(stand.log.get()).toEqual(before);
  });
});
