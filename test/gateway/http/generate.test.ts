import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { InferenceResponse } from "../../../protocol/inference.ts";
import type { ValidInferenceRequest } from "../../../protocol/valid-request.ts";
import { errorOf } from "../../helpers/http-client.ts";
import { echo } from "../../helpers/memory-engine.ts";
import type { Answers } from "../../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { HttpStand } from "./http-stand.ts";

let stand: HttpStand;
const answer = '{"OUT0":5.0,"id":"7","model_name":"id_fp32","model_version":"1"}';

beforeAll(async () => {
  stand = await HttpStand.start();
  add("thrice", (request) => [echo(request), echo(request), echo(request)]);
  add("never", () => []);
  add("breaks", function* (request): Iterable<InferenceResponse> {
    yield echo(request);
    throw new InferenceError(StatusCode.Unavailable, "it broke");
  });
});
afterAll(() => stand.stop());

function add(name: string, answers: Answers): void {
  const config = {
    input: [modelInput("IN0", "TYPE_FP32", [1])],
    output: [modelOutput("OUT0", "TYPE_FP32", [1])],
    modelTransactionPolicy: { decoupled: true },
  };
  stand.engine.add(servedModel(name, config), answers);
}

const generate = (model: string, body: object, stream = ""): ReturnType<HttpStand["post"]> =>
  stand.post(`/v2/models/${model}/generate${stream}`, body);
const generateStream = (model: string, body: object): ReturnType<HttpStand["post"]> =>
  generate(model, body, "_stream");

const eventsOf = (text: string): string[] => text.match(/(?<=^data: ).*$/gm) ?? [];

describe("generate over HTTP", () => {
  it("answers flat JSON with flat JSON", async () => {
    const reply = await generate("id_fp32", { IN0: 5, id: "7" });
    expect([reply.status, reply.text]).toEqual([200, answer]);
    expect((await generate("id_fp32/versions/1", { IN0: 5, id: "7" })).text).toBe(answer);
  });

  it.each(["thrice", "never"])(
    "expects exactly one response, which '%s' does not give",
    async (model) => {
      const reply = await generate(model, { IN0: 5 });
      expect(reply.status).toBe(500);
      expect(errorOf(reply)).toContain("generate expects model to produce exactly 1 response");
    },
  );

  it.each([
    ["nothing", { IN0: 5 }, 404, "Request for unknown model: 'nothing' is not found"],
    ["id_fp32", {}, 400, "missing required input(s) ['IN0']"],
    ["id_fp32", { IN0: "x" }, 500, "attempt to access JSON non-number as double"],
  ])("refuses a request to %s with %j, streaming or not", async (model, body, status, text) => {
    for (const reply of [await generate(model, body), await generateStream(model, body)]) {
      expect(reply.status).toBe(status);
      expect(errorOf(reply)).toContain(text);
    }
  });

  it("takes bodies as they are only", async () => {
    const reply = await stand.post("/v2/models/id_fp32/generate", "{}", {
      "Content-Encoding": "gzip",
    });
    expect(errorOf(reply)).toBe("Unsupported content-encoding, only 'identity' is supported.");
  });
});

describe("generate_stream over HTTP", () => {
  it("sends each response as an event", async () => {
    const reply = await generateStream("thrice", { IN0: 5 });
    expect(reply.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    expect(eventsOf(reply.text)).toHaveLength(3);
    expect((await generateStream("id_fp32", { IN0: 5, id: "7" })).text).toBe(`data: ${answer}\n\n`);
  });

  it("ends an empty stream as a stream", async () => {
    const reply = await generateStream("never", { IN0: 5 });
    expect([reply.status, reply.text]).toEqual([200, ""]);
  });

  it("tells of an error after the first event in an event", async () => {
    const reply = await generateStream("breaks", { IN0: 5 });
    expect(reply.status).toBe(200);
    expect(eventsOf(reply.text).map((event) => JSON.parse(event).error)).toEqual([
      undefined,
      "it broke",
    ]);
  });

  it("sends an event before the next one is there, and cancels for a client that leaves", async () => {
    const cancelled = Promise.withResolvers<void>();
    add("endless", async function* (request: ValidInferenceRequest, call) {
      yield echo(request);
      await once(call.signal, "abort");
      cancelled.resolve();
    });
    const leave = new AbortController();
    const response = await fetch(`${stand.origin}/v2/models/endless/generate_stream`, {
      method: "POST",
      body: '{"IN0":5}',
      signal: leave.signal,
    });
    const first = await response.body?.getReader().read();
    expect(Buffer.from(first?.value ?? []).toString()).toContain('data: {"OUT0":5.0');
    leave.abort();
    await cancelled.promise;
  });

  it("waits for a client that reads slowly", async () => {
    let made = 0;
    const wide = {
      input: [modelInput("IN0", "TYPE_FP32", [-1])],
      output: [modelOutput("OUT0", "TYPE_FP32", [-1])],
    };
    stand.engine.add(servedModel("flood", wide), async function* (request) {
      for (; made < 2000; made += 1) yield echo(request);
    });
    const body = JSON.stringify({ IN0: Array.from({ length: 10_000 }, () => 0.5) });
    const response = await fetch(`${stand.origin}/v2/models/flood/generate_stream`, {
      method: "POST",
      body,
    });
    const reader = response.body?.getReader();
    await reader?.read();
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(made).toBeLessThan(2000);
    await reader?.cancel();
  });
});
