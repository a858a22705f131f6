import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import { eventually } from "../../helpers/eventually.ts";
import { type Answer, binaryInfer, errorOf, type Headers } from "../../helpers/http-client.ts";
import { echo } from "../../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { HttpStand } from "./http-stand.ts";

const asynchronous = { Prefer: "respond-async" };
const input = { name: "IN0", shape: [1, 4], datatype: "FP32", data: [1, 2, 3, 4] };
const request = { id: "7", inputs: [input] };
const flat = { inputs: [{ name: "IN0", shape: [1], datatype: "FP32", data: [1] }] };

let stand: HttpStand;
/** Requests to "slow" wait for it. */
let slow: PromiseWithResolvers<void>;
let executions = 0;
/** What the next request to "counted" comes to. */
let outcome: InferenceError | undefined;

beforeAll(async () => {
  stand = await HttpStand.start();
  const tensors = {
    input: [modelInput("IN0", "TYPE_FP32", [-1])],
    output: [modelOutput("OUT0", "TYPE_FP32", [-1])],
  };
  slow = Promise.withResolvers<void>();
  stand.engine.add(servedModel("slow", tensors), async function* (given) {
    await slow.promise;
    yield echo(given);
  });
  stand.engine.add(servedModel("counted", tensors), (given) => {
    executions++;
    if (outcome) throw outcome;
    return [echo(given)];
  });
});
afterAll(() => stand.stop());

async function submit(model: string, body: object = request): Promise<string> {
  const answer = await stand.infer(model, body, asynchronous);
  expect(answer.status).toBe(202);
  return String(JSON.parse(answer.text).id);
}

function job(id: string, rest = ""): Promise<Answer> {
  return stand.get(`/v2/jobs/${id}${rest}`);
}

function untilState(id: string, state: string): Promise<void> {
  return eventually(async () => expect(JSON.parse((await job(id)).text)).toMatchObject({ state }));
}

/** Has the requests to "slow" answered, and those after them wait. */
function finishSlow(): void {
  slow.resolve();
  slow = Promise.withResolvers<void>();
}

function keyed(key: string, body: object, more: Headers = {}): Promise<Answer> {
  return stand.infer("counted", body, { "Idempotency-Key": key, ...more });
}

describe("POST infer with Prefer: respond-async", () => {
  it("answers with the job, and where it is", async () => {
    const { status, headers, text } = await stand.infer("batch", request, asynchronous);
    expect(status).toBe(202);
    const { id, ...rest } = JSON.parse(text);
    expect(headers["preference-applied"]).toBe("respond-async");
    expect(headers.location).toBe(`/v2/jobs/${id}`);
    expect(rest).toMatchObject({
      model_name: "batch",
      durability: "none",
      can_be_lost: "every job, when the process that keeps it ends",
    });
  });

  it("refuses at once what would be refused without it", async () => {
    const wrong = await stand.infer("batch", { inputs: [{ ...input, name: "x" }] }, asynchronous);
    expect(wrong.status).toBe(400);
    expect(errorOf(wrong)).toContain("unexpected inference input 'x'");
    expect((await stand.infer("nobody", request, asynchronous)).status).toBe(404);
    expect((await stand.infer("decoupled", request, asynchronous)).status).toBe(501);
  });

  it.each(["wait=10, respond-async", "Respond-Async; x=1, wait=10"])(
    "answers with the response when that comes soon enough: %s",
    async (preference) => {
      const answer = await stand.infer("batch", request, { Prefer: preference });
      expect(answer.status).toBe(200);
      expect(answer.text).toBe((await stand.infer("batch", request)).text);
    },
  );

  it("answers with the job when the response does not come in the time to wait", async () => {
    const answer = await stand.infer("slow", flat, { Prefer: "respond-async, wait=1" });
    expect(answer.status).toBe(202);
    finishSlow();
  });

  it("leaves calls with other preferences alone", async () => {
    const answer = await stand.infer("batch", request, { Prefer: "return=minimal" });
    expect(answer.status).toBe(200);
  });
});

describe("the result of a job", () => {
  const tail = Buffer.from(new Float32Array([1, 2, 3, 4]).buffer);
  const binary = {
    ...request,
    inputs: [
      {
        name: "IN0",
        shape: [1, 4],
        datatype: "FP32",
        parameters: { binary_data_size: tail.length },
      },
    ],
    parameters: { binary_data_output: true },
  };

  it("is what infer would have answered, as JSON", async () => {
    const id = await submit("batch");
    await untilState(id, "done");
    const [answer, expected] = [await job(id, "/result"), await stand.infer("batch", request)];
    expect(answer.status).toBe(200);
    expect(answer.text).toBe(expected.text);
    expect(answer.headers["content-type"]).toBe("application/json");
  });

  it("is what infer would have answered, as binary data", async () => {
    const [body, headers] = binaryInfer(binary, tail);
    const given = await stand.infer("batch", body, { ...headers, ...asynchronous });
    const { id } = JSON.parse(given.text);
    await untilState(id, "done");
    const [answer, expected] = [
      await job(id, "/result"),
      await stand.infer("batch", body, headers),
    ];
    expect(answer.bytes).toEqual(expected.bytes);
    expect(answer.headers["inference-header-content-length"]).toBe(
      expected.headers["inference-header-content-length"],
    );
  });

  it("comes compressed, as the client likes, of a compressed request", async () => {
    const body = gzipSync(JSON.stringify(request));
    const headers = { "Content-Encoding": "gzip", ...asynchronous };
    const { id } = JSON.parse((await stand.infer("batch", body, headers)).text);
    await untilState(id, "done");
    const path = `/v2/jobs/${id}/result`;
    const answer = await stand.ask("GET", path, undefined, { "Accept-Encoding": "gzip" });
    expect(answer.headers["content-encoding"]).toBe("gzip");
  });

  it("is not there before the job is done", async () => {
    const id = await submit("slow", flat);
    const answer = await job(id, "/result");
    expect(answer.status).toBe(409);
    expect(answer.headers["retry-after"]).toBe("1");
    finishSlow();
    await untilState(id, "done");
  });

  it("is the model's error with its status", async () => {
    outcome = new InferenceError(StatusCode.Internal, "out of order");
    const id = await submit("counted", flat);
    await untilState(id, "failed");
    const answer = await job(id, "/result");
    expect(answer.status).toBe(500);
    expect(errorOf(answer)).toBe("out of order");
    expect(JSON.parse((await job(id)).text).error).toEqual({
      code: "INTERNAL",
      message: "out of order",
    });
    outcome = undefined;
    expect((await stand.post(`/v2/jobs/${id}/replay`)).status).toBe(202);
    await untilState(id, "done");
    expect((await stand.post(`/v2/jobs/${id}/replay`)).status).toBe(409);
  });

  it.each(["", "/result", "/events"])("is not found for an unknown job: %s", async (rest) => {
    expect((await job("j_of-nobody-at-all-as-it-seems-", rest)).status).toBe(404);
    expect((await job("%00", rest)).status).toBe(404);
  });
});

describe("DELETE of a job", () => {
  it("cancels it, and once more changes nothing", async () => {
    const id = await submit("slow", flat);
    for (let i = 0; i < 2; i++) {
      const answer = await stand.ask("DELETE", `/v2/jobs/${id}`);
      expect(answer.status).toBe(200);
      expect(JSON.parse(answer.text)).toMatchObject({ id, state: "cancelled" });
    }
    finishSlow();
    expect((await job(id, "/result")).status).toBe(400);
  });
});

describe("the events of a job", () => {
  it("tell each change until the end", async () => {
    const id = await submit("slow", flat);
    const told = job(id, "/events");
    await untilState(id, "running");
    finishSlow();
    const { text } = await told;
    const [first = "", ...others] = text.trimEnd().split("\n\n");
    expect(first).toMatch(/^id: \d+\nevent: running\ndata: \{"id":"j_/u);
    expect(others.at(-1)).toMatch(/^id: \d+\nevent: done\ndata: /u);
  });

  it("leave out what the client has seen", async () => {
    const id = await submit("batch");
    await untilState(id, "done");
    const { text } = await job(id, "/events");
    const seen = /^id: (?<id>\d+)$/mu.exec(text)?.groups?.["id"] ?? "";
    const again = (lastEventId: string): Promise<Answer> =>
      stand.ask("GET", `/v2/jobs/${id}/events`, undefined, { "Last-Event-ID": lastEventId });
    expect(await again(seen)).toMatchObject({ status: 204, text: "" });
    expect((await again("0")).text).toBe(text);
  });
});

describe("the events of a job on a server that ends", () => {
  it("end, so that the client goes elsewhere", async () => {
    const ending = await HttpStand.start();
    const tensors = {
      input: [modelInput("IN0", "TYPE_FP32", [-1])],
      output: [modelOutput("OUT0", "TYPE_FP32", [-1])],
    };
    const { promise: never } = Promise.withResolvers<void>();
    ending.engine.add(servedModel("endless", tensors), async function* (given) {
      await never;
      yield echo(given);
    });
    const { id } = JSON.parse((await ending.infer("endless", flat, asynchronous)).text);
    const events = ending.get(`/v2/jobs/${id}/events`);
    ending.plane.jobs?.close();
    expect((await events).status).toBe(200);
    await ending.stop();
  });
});

describe("GET /v2/jobs", () => {
  it("lists the newest first, page by page, of one state if it is asked for", async () => {
    const ids = [await submit("batch"), await submit("batch"), await submit("batch")];
    for (const id of ids) await untilState(id, "done");
    const first = JSON.parse((await stand.get("/v2/jobs?limit=2&state=done")).text);
    expect(first.jobs.map(({ id }: { id: string }) => id)).toEqual([ids[2], ids[1]]);
    const second = await stand.get(`/v2/jobs?limit=1&cursor=${first.next_cursor}`);
    expect(JSON.parse(second.text).jobs).toMatchObject([{ id: ids[0] }]);
    const none = await stand.get("/v2/jobs?limit=2&state=warming");
    expect(JSON.parse(none.text).jobs).toEqual([]);
  });

  it.each(["limit=0", "limit=101", "limit=x", "state=lost", "cursor=x"])(
    "refuses %s",
    async (query) => {
      expect((await stand.get(`/v2/jobs?${query}`)).status).toBe(400);
    },
  );
});

describe("Idempotency-Key", () => {
  it("gives the same bytes again, and says so", async () => {
    executions = 0;
    const first = await keyed("same", { id: "a", ...flat });
    const second = await keyed('"same"', { id: "a", ...flat });
    expect(first.status).toBe(200);
    expect(first.text).toBe((await stand.infer("counted", { id: "a", ...flat })).text);
    expect(second.bytes).toEqual(first.bytes);
    expect(first.headers["idempotency-replayed"]).toBeUndefined();
    expect(second.headers["idempotency-replayed"]).toBe("true");
    expect(executions).toBe(2);
  });

  it("refuses another request with the key of the first", async () => {
    await keyed("other", flat);
    const answer = await keyed("other", { id: "b", ...flat });
    expect(answer.status).toBe(422);
    const elsewhere = await stand.infer("slow", flat, { "Idempotency-Key": "other" });
    expect(elsewhere.status).toBe(422);
  });

  it("joins a request that runs", async () => {
    const headers = { "Idempotency-Key": "joined" };
    const id = JSON.parse(
      (await stand.infer("slow", flat, { ...headers, ...asynchronous })).text,
    ).id;
    const joined = stand.infer("slow", flat, headers);
    const again = await stand.infer("slow", flat, { ...headers, ...asynchronous });
    expect(JSON.parse(again.text).id).toBe(id);
    finishSlow();
    expect((await joined).headers["idempotency-replayed"]).toBe("true");
    expect((await joined).status).toBe(200);
  });

  it("keeps the model's refusal", async () => {
    executions = 0;
    outcome = new InferenceError(StatusCode.InvalidArg, "not this one");
    const first = await keyed("refused", flat);
    outcome = undefined;
    const second = await keyed("refused", flat);
    expect([first.status, second.status]).toEqual([400, 400]);
    expect(second.text).toBe(first.text);
    expect(executions).toBe(1);
  });

  it("keeps no answer that says to come again", async () => {
    outcome = new InferenceError(StatusCode.Unavailable, "Exceeds maximum queue size");
    expect((await keyed("busy", flat)).status).toBe(503);
    outcome = undefined;
    expect((await keyed("busy", flat)).status).toBe(200);
  });

  it("is not bound by a request that is none", async () => {
    const wrong = { inputs: [{ ...input, name: "x" }] };
    expect((await keyed("wrong", wrong)).status).toBe(400);
    expect((await keyed("wrong", wrong)).status).toBe(400);
  });

  it.each(["k".repeat(256), "\u{e9}", "", '""'])("refuses a key that is none: %s", async (key) => {
    const answer = await keyed(key, flat);
    expect(answer.status).toBe(400);
    expect(errorOf(answer)).toContain("Idempotency-Key");
  });
});

describe("restricted inference", () => {
  it("keeps jobs from those who may not infer", async () => {
    const restrictions = new Map([["inference", { key: "secret", value: "s" }]] as const);
    const restricted = await HttpStand.start({ restrictions });
    expect((await restricted.get("/v2/jobs")).status).toBe(403);
    expect((await restricted.infer("batch", request, asynchronous)).status).toBe(403);
    await restricted.stop();
  });
});
