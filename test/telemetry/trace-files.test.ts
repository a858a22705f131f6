import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import type { RequestTrace } from "../../protocol/request-trace.ts";
import { defaultTraceConfig } from "../../telemetry/trace-config.ts";
import { TraceFile } from "../../telemetry/trace-file.ts";
import { TraceFiles } from "../../telemetry/trace-files.ts";
import type { TraceSettingValues } from "../../telemetry/trace-values.ts";
import { Tracer } from "../../telemetry/tracer.ts";
import { eventually } from "../helpers/eventually.ts";
import { testFolder } from "../helpers/onnx-version.ts";
import { requestFor, responseTo } from "../helpers/requests.ts";
import { modelInput, modelOutput, servedModel } from "../helpers/served-model.ts";
import { SilentLog } from "../helpers/silent-log.ts";

const model = servedModel("m", {
  input: [modelInput("IN", "TYPE_FP32", [4])],
  output: [modelOutput("OUT", "TYPE_FP32", [4])],
  maxBatchSize: 8,
});

interface Entry {
  readonly id: number;
  readonly model_name?: string;
  readonly parent_id?: number;
  readonly timestamps?: readonly { readonly name: string; readonly ns: number }[];
  readonly activity?: string;
  readonly tensor?: object;
}

let file: string;
let log: SilentLog;

beforeEach(() => {
  file = path.join(testFolder(), "traces", "t.json");
  log = new SilentLog();
});

function tracer(values: Partial<TraceSettingValues>, to = file): Tracer {
  const level = { timestamps: true, tensors: false };
  const all = { ...defaultTraceConfig.values, level, rate: 1, ...values };
  return new Tracer({ ...defaultTraceConfig, values: all, file: to }, new TraceFiles(to, log));
}

function begin(from: Tracer): RequestTrace {
  const trace = from.begin("m", { traceparent: undefined, receivedAt: 0 });
  if (!trace) throw new Error("expected a trace");
  return trace;
}

/** A request from its first to its last moment. */
function traceOne(from: Tracer, id = ""): void {
  const one = begin(from);
  one.mark("HTTP_RECV_START", 1);
  one.enqueued(requestFor(model, [1, 4], { id }), 2);
  one.ended(3);
  one.close(4);
}

function read(name = file): Entry[] {
  return JSON.parse(readFileSync(name, "utf8"));
}

function names(entries: readonly Entry[]): string[] {
  return entries.flatMap(({ timestamps = [] }) => timestamps.map(({ name }) => name));
}

/** How many requests the file tells of. */
function requests(name = file): number {
  return read(name).filter((entry) => entry.model_name).length;
}

describe("TraceFiles", () => {
  it("writes what a request went through as the reference does, and leaves an array when it is closed", async () => {
    const all = tracer({ level: { timestamps: true, tensors: true } });
    const one = begin(all);
    const request = requestFor(model, [1, 4], { id: 'a "b"' });
    one.enqueued(request, 1);
    one.computed({ startAt: 2, inputEndAt: 3, outputStartAt: 4, endAt: 5 });
    one.responded(responseTo(request), 6);
    one.ended(6);
    one.close(7);
    await all.close();
    const entries = read();
    expect(entries[0]).toEqual({ id: 1, model_name: "m", model_version: 1, request_id: 'a "b"' });
    expect(names(entries)).toEqual([
      "REQUEST_START",
      "QUEUE_START",
      "COMPUTE_START",
      "COMPUTE_INPUT_END",
      "COMPUTE_OUTPUT_START",
      "COMPUTE_END",
      "INFER_RESPONSE_COMPLETE",
      "REQUEST_END",
    ]);
    const tensor = { name: "IN", data: "0,0,0,0", shape: "1,4", dtype: "FP32" };
    expect(entries.filter(({ activity }) => activity)).toEqual([
      { id: 1, activity: "TENSOR_QUEUE_INPUT", tensor },
      { id: 1, activity: "TENSOR_BACKEND_OUTPUT", tensor: { ...tensor, name: "OUT" } },
    ]);
  });

  it("counts nanoseconds on the system's monotonic clock", async () => {
    const before = process.hrtime.bigint();
    const all = tracer({});
    const one = begin(all);
    one.mark("HTTP_RECV_START", performance.now());
    one.close(0);
    const after = process.hrtime.bigint();
    await all.close();
    const ns = BigInt(read()[0]?.timestamps?.[0]?.ns ?? 0);
    // The two clocks of the process drift apart by a little.
    expect(ns).toBeGreaterThan(before - 5_000_000n);
    expect(ns).toBeLessThan(after + 5_000_000n);
  });

  it("tells of the steps of an ensemble below it, each with a number of its own", async () => {
    const all = tracer({});
    const whole = begin(all);
    whole.enqueued(requestFor(model), 1);
    const step = whole.step(2);
    step.enqueued(requestFor(model), 2);
    step.responded(responseTo(requestFor(model)), 3);
    whole.close(4);
    await all.close();
    const heads = read().filter((entry) => entry.model_name);
    expect(heads.map(({ id, parent_id: parent }) => [id, parent])).toEqual([
      [1, undefined],
      [2, 1],
    ]);
    // Only what the client gets is complete for it.
    expect(names(read())).not.toContain("INFER_RESPONSE_COMPLETE");
  });

  it("ignores what comes after the end of a trace", async () => {
    const all = tracer({});
    const one = begin(all);
    one.mark("HTTP_RECV_START", 1);
    one.close(2);
    one.mark("HTTP_SEND_START", 3);
    one.close(4);
    await all.close();
    expect(names(read())).toEqual(["HTTP_RECV_START"]);
  });

  it("leaves a whole array in the file after every write", async () => {
    const all = tracer({});
    traceOne(all);
    await eventually(() => expect(requests()).toBe(1));
    traceOne(all);
    traceOne(all);
    await eventually(() => expect(requests()).toBe(3));
    await all.close();
    expect(requests()).toBe(3);
  });

  it("puts so many traces into each numbered file, and the rest into the last one", async () => {
    const all = tracer({ logFrequency: 2 });
    for (let i = 0; i < 5; i++) traceOne(all);
    await all.close();
    expect([0, 1, 2].map((index) => requests(`${file}.${index}`))).toEqual([2, 2, 1]);
    expect(existsSync(file)).toBe(false);
  });

  it("writes a numbered file when the count is used up and its last trace has ended", async () => {
    const all = tracer({ count: 2 });
    const open = begin(all);
    open.enqueued(requestFor(model), 1);
    traceOne(all);
    expect(all.begin("m", { traceparent: undefined, receivedAt: 0 })).toBeUndefined();
    open.close(2);
    await eventually(() => expect(requests(`${file}.0`)).toBe(2));
    await all.close();
    expect(readdirSync(path.dirname(file))).toEqual(["t.json.0"]);
  });

  it("writes what it has when the settings change, and goes on in the next file", async () => {
    const all = tracer({ logFrequency: 10 });
    traceOne(all, "before");
    const open = begin(all);
    open.enqueued(requestFor(model), 1);
    all.update("", { logFrequency: 1 });
    traceOne(all, "after");
    open.close(2);
    await all.close();
    expect([0, 1, 2].map((index) => requests(`${file}.${index}`))).toEqual([1, 1, 1]);
  });

  it("traces one model and not the others when only that one is switched on", async () => {
    const all = tracer({ level: { timestamps: false, tensors: false } });
    expect(all.active).toBe(false);
    all.update("m", { level: { timestamps: true, tensors: false } });
    expect(all.active).toBe(true);
    traceOne(all);
    expect(all.begin("other", { traceparent: undefined, receivedAt: 0 })).toBeUndefined();
    await all.close();
    expect(requests()).toBe(1);
  });

  it("tells the log once that traces cannot be written, and goes on", async () => {
    const folder = testFolder();
    writeFileSync(path.join(folder, "no-folder"), "");
    const all = tracer({ logFrequency: 1 }, path.join(folder, "no-folder", "t.json"));
    traceOne(all);
    traceOne(all);
    await all.close();
    expect(log.errors.map(([message]) => message)).toEqual([
      "traces are lost: their file cannot be written",
    ]);
  });

  it("loses traces rather than memory when the disk does not keep up", async () => {
    const slow = new TraceFile(file, log);
    // Nothing is written before the event loop turns.
    for (let i = 0; i < 10; i++) slow.addFile("1".repeat(10 * 1024 * 1024));
    await slow.close();
    expect(log.errors.map(([message]) => message)).toEqual([
      "traces are lost: their file is written too slowly",
    ]);
    expect(readdirSync(path.dirname(file))).toHaveLength(6);
  });
});
