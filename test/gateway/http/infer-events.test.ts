import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Call } from "../../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { ProgressListener } from "../../../protocol/progress.ts";
import { eventually } from "../../helpers/eventually.ts";
import { echo } from "../../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { HttpStand } from "./http-stand.ts";

let stand: HttpStand;
/** What the engine is asked, and what lets it answer. */
let asked: PromiseWithResolvers<Call>;
let answer: PromiseWithResolvers<void>;
let progress: ProgressListener | undefined;

beforeAll(async () => {
  stand = await HttpStand.start();
  const config = {
    input: [modelInput("IN0", "TYPE_FP32", [2])],
    output: [modelOutput("OUT0", "TYPE_FP32", [2])],
  };
  stand.engine.add(servedModel("waits", config), async function* (request, call) {
    asked.resolve(call);
    await answer.promise;
    yield echo(request);
  });
  stand.engine.progress = (_name, _version, listener) => {
    progress = listener;
    return () => (progress = undefined);
  };
});
beforeEach(() => {
  asked = Promise.withResolvers();
  answer = Promise.withResolvers();
});
afterAll(() => stand.stop());

const body = (data: readonly number[], binary = false): string =>
  JSON.stringify({
    inputs: [{ name: "IN0", datatype: "FP32", shape: [data.length], data }],
    ...(binary && { parameters: { binary_data_output: true } }),
  });
const headers = { accept: "text/event-stream" };

/** A call whose events are read as they come. */
async function open(
  text = body([1, 2]),
): Promise<{ text(): string; ended(): boolean; cancel(): void }> {
  const controller = new AbortController();
  const response = await fetch(`${stand.origin}/v2/models/waits/infer`, {
    method: "POST",
    body: text,
    headers,
    signal: controller.signal,
  });
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  let read = "";
  let over = false;
  const decoder = new TextDecoder();
  const reading = (async () => {
    for await (const chunk of response.body ?? []) read += decoder.decode(chunk);
    over = true;
  })();
  reading.catch(() => {});
  return { text: () => read, ended: () => over, cancel: () => controller.abort() };
}

describe("infer with Accept: text/event-stream", () => {
  it("tells what a request waits for, and then its result", async () => {
    const events = await open();
    await eventually(() => expect(events.text()).toBe("event: queued\ndata: {}\n\n"));
    progress?.({ state: "starting" });
    progress?.({ state: "fetching", fetchedBytes: 1, totalBytes: 3 });
    progress?.({ state: "loading" });
    progress?.({ state: "starting" });
    progress?.({ state: "running" });
    answer.resolve();
    await eventually(() => expect(events.ended()).toBe(true));
    const result = {
      model_name: "waits",
      model_version: "1",
      outputs: [{ name: "OUT0", datatype: "FP32", shape: [2], data: [1, 2] }],
    };
    expect(events.text().trimEnd().split("\n\n").slice(1)).toEqual([
      "event: starting\ndata: {}",
      'event: fetching\ndata: {"percent":33,"fetched_bytes":1,"total_bytes":3}',
      "event: loading\ndata: {}",
      "event: running\ndata: {}",
      `event: result\ndata: ${JSON.stringify(result).replace("[1,2]}", "[1.0,2.0]}")}`,
    ]);
    expect(progress).toBeUndefined();
  });

  it("writes binary outputs as JSON", async () => {
    const events = await open(body([1, 2], true));
    answer.resolve();
    await eventually(() => expect(events.text()).toContain('"data":[1.0,2.0]'));
  });

  it("ends with an error that comes later", async () => {
    const events = await open();
    answer.reject(new InferenceError(StatusCode.Unavailable, "Request timeout expired"));
    await eventually(() => expect(events.ended()).toBe(true));
    expect(events.text()).toContain(
      'event: error\ndata: {"error":"Request timeout expired","code":"UNAVAILABLE"}\n\n',
    );
  });

  it("refuses a bad request with its status", async () => {
    const refused = await stand.infer("waits", body([1, 2, 3]), headers);
    expect(refused.status).toBe(400);
    expect(refused.headers["content-type"]).toBe("application/json");
    expect((await stand.infer("unknown", body([1]), headers)).status).toBe(404);
  });

  it("cancels the call when the client hangs up", async () => {
    const events = await open();
    const call = await asked.promise;
    events.cancel();
    await eventually(() => expect(call.cancelled?.code).toBe(StatusCode.Cancelled));
    answer.resolve();
  });

  it("answers everybody else as ever", async () => {
    answer.resolve();
    const plain = await stand.infer("waits", body([1, 2]), { accept: "*/*" });
    expect(plain.headers["content-type"]).toBe("application/json");
  });
});
