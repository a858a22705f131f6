import { status } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RequestTrace } from "../../protocol/request-trace.ts";
import { defaultTraceConfig, parseTraceConfig } from "../../telemetry/trace-config.ts";
import { type TraceOutput, Tracer } from "../../telemetry/tracer.ts";
import type { Fields } from "../helpers/grpc-client.ts";
import { type Answer, errorOf } from "../helpers/http-client.ts";
import { GrpcStand } from "./grpc/grpc-stand.ts";
import { HttpStand } from "./http/http-stand.ts";

const nowhere: TraceOutput = {
  begin: (): RequestTrace | undefined => undefined,
  resume: (): RequestTrace | undefined => undefined,
  ended: () => {},
  close: () => Promise.resolve(),
};
const off = {
  trace_level: ["OFF"],
  trace_rate: "1000",
  trace_count: "-1",
  log_frequency: "0",
  trace_file: "/traces/t.json",
  trace_mode: "triton",
};

let tracer: Tracer;
let http: HttpStand;
let grpc: GrpcStand;

async function startStands(settings = ["triton,file=/traces/t.json"]): Promise<void> {
  tracer = new Tracer(parseTraceConfig(settings), nowhere);
  [http, grpc] = await Promise.all([HttpStand.start({ tracer }), GrpcStand.start({ tracer })]);
}

beforeEach(() => startStands());
afterEach(() => Promise.all([http.stop(), grpc.stop()]));

const all = "/v2/trace/setting";
const ofModel = "/v2/models/batch/trace/setting";

function json(answer: Answer): unknown {
  return JSON.parse(answer.text);
}

/** The settings that gRPC answers, as the one text of each. */
async function overGrpc(settings: Fields, modelName = ""): Promise<Record<string, string>> {
  const answer = await grpc.ask("TraceSetting", { settings, modelName });
  const entries = Object.entries<{ value: string[] }>(answer["settings"]);
  return Object.fromEntries(entries.map(([name, { value }]) => [name, value.join(" ")]));
}

describe("/v2/trace/setting", () => {
  it("shows the settings of all models and of one", async () => {
    const answer = await http.get(all);
    expect(answer.headers["content-type"]).toBe("application/json");
    expect(json(answer)).toEqual(off);
    expect(json(await http.get(ofModel))).toEqual(off);
  });

  it("changes the settings of one model, which are then no longer those of all", async () => {
    const changed = { trace_level: ["TIMESTAMPS", "TENSORS"], trace_rate: "9" };
    expect(json(await http.post(ofModel, changed))).toEqual({ ...off, ...changed });
    expect(json(await http.post(all, { trace_count: "5", trace_rate: "2" }))).toEqual({
      ...off,
      trace_count: "5",
      trace_rate: "2",
    });
    expect(json(await http.get(ofModel))).toEqual({ ...off, ...changed, trace_count: "5" });
    expect(tracer.active).toBe(true);
  });

  it("takes a setting back that is null", async () => {
    await http.post(all, { trace_rate: "2" });
    await http.post(ofModel, { trace_rate: "9" });
    expect(json(await http.post(ofModel, { trace_rate: null }))).toMatchObject({ trace_rate: "2" });
    expect(json(await http.post(all, { trace_rate: null }))).toEqual(off);
  });

  it("changes nothing when one of several settings is refused", async () => {
    await http.post(all, { trace_rate: "7", trace_count: "x" });
    expect(json(await http.get(all))).toEqual(off);
  });

  it.each([
    [{ trace_file: "/etc/passwd" }, 501, "trace file location can not be updated through network"],
    [{ trace_file: null }, 501, "trace file location can not be updated through network protocol"],
    [{ trace_level: ["OFF", "TENSORS"] }, 400, "Expect only one trace level 'OFF' is specified"],
    [{ trace_level: "OFF" }, 500, "attempt to access JSON non-array as array"],
    [{ trace_level: [1] }, 500, "attempt to access JSON non-string as string"],
    [{ trace_rate: 7 }, 500, "attempt to access JSON non-string as string"],
    [{ trace_rate: "7x" }, 400, "Unable to parse 'trace_rate', got: 7x"],
    [
      { trace_rate: "4294967296" },
      400,
      "Unable to parse 'trace_rate', value is out of range [ 0, 4294967295 ], got: 4294967296",
    ],
    [{ trace_count: "-2" }, 400, "Unable to parse 'trace_count'. Expecting value >= -1, got:-2"],
    [
      { log_frequency: "-1" },
      400,
      "Unable to parse 'log_frequency', value is out of range [ 0, 4294967295 ], got: -1",
    ],
    [
      { trace_level: ["TIMESTAMPS"], trace_rate: "0" },
      400,
      "Attempting to set invalid trace setting :sample rate must be non-zero",
    ],
  ])("refuses %j", async (settings, code, message) => {
    for (const path of [all, ofModel]) {
      const answer = await http.post(path, settings);
      expect([answer.status, errorOf(answer)]).toEqual([code, expect.stringContaining(message)]);
    }
    expect(json(await http.get(all))).toEqual(off);
  });

  it("knows only models that answer, and no versions", async () => {
    for (const answer of [
      await http.get("/v2/models/nobody/trace/setting"),
      await http.post("/v2/models/nobody/trace/setting", "{"),
    ]) {
      expect([answer.status, errorOf(answer)]).toEqual([400, "Request for unknown model : nobody"]);
    }
    expect((await http.get("/v2/models/batch/versions/1/trace/setting")).status).toBe(404);
    expect((await http.ask("DELETE", all)).status).toBe(405);
  });

  it("refuses to trace when the server was given no file", async () => {
    await Promise.all([http.stop(), grpc.stop()]);
    await startStands([]);
    const answer = await http.post(all, { trace_level: ["TIMESTAMPS"] });
    expect([answer.status, errorOf(answer)]).toEqual([
      400,
      "Attempting to set invalid trace setting :trace file name is not given",
    ]);
  });

  it("shows where spans are sent instead of the file", async () => {
    await Promise.all([http.stop(), grpc.stop()]);
    await startStands(["mode=opentelemetry", "opentelemetry,resource=a=b"]);
    expect(json(await http.get(all))).toEqual({
      trace_level: ["OFF"],
      trace_rate: "1000",
      trace_count: "-1",
      trace_mode: "opentelemetry",
      url: defaultTraceConfig.collector.url,
      resource: "a=b",
      bsp_max_queue_size: "2048",
      bsp_schedule_delay: "5000",
      bsp_max_export_batch_size: "512",
    });
  });
});

describe("TraceSetting", () => {
  it("shows and changes the same settings as HTTP", async () => {
    const shown = { ...off, trace_level: "OFF" };
    expect(await overGrpc({})).toEqual(shown);
    const settings = { trace_level: { value: ["TIMESTAMPS", "TENSORS"] } };
    expect(await overGrpc(settings, "echo_FP32")).toEqual({
      ...off,
      trace_level: "TIMESTAMPS TENSORS",
    });
    expect(await overGrpc({})).toEqual(shown);
    expect(await overGrpc({ trace_level: { value: [] } }, "echo_FP32")).toEqual(shown);
  });

  it.each([
    [{ trace_file: { value: ["x"] } }, status.UNIMPLEMENTED, "trace file location can not be"],
    [
      { trace_rate: { value: ["1", "2"] } },
      status.INVALID_ARGUMENT,
      "expect only 1 value for 'trace_rate'",
    ],
    [{ trace_count: { value: ["-5"] } }, status.INVALID_ARGUMENT, "Expecting value >= -1, got: -5"],
    [
      { trace_level: { value: ["OFF", "TENSORS"] } },
      status.INVALID_ARGUMENT,
      "Expect only one trace level",
    ],
  ])("refuses %j", async (settings, code, message) => {
    await expect(overGrpc(settings)).rejects.toMatchObject({
      code,
      details: expect.stringContaining(message),
    });
  });

  it("knows only models that answer", async () => {
    await expect(overGrpc({}, "nobody")).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: "Request for unknown model : nobody",
    });
  });
});
