import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../helpers/eventually.ts";
import { type Answer, binaryInfer, type Headers } from "../../helpers/http-client.ts";
import { rowOf, timesModel } from "../../helpers/times-model.ts";
import { type EdgeStand, startEdgeStand } from "./edge-stand.ts";

let stand: EdgeStand;
let key: string;
beforeAll(async () => {
  stand = await startEdgeStand();
  key = await stand.key();
}, 90_000);
afterAll(() => stand.stop());
/** So that no test knows what another one asked. */
let value = 0;
beforeEach(() => {
  value += 10;
});

/** The answer, and how many calls reached the origin for it; those by which the edge asks about models are not among them. */
async function counted(ask: () => Promise<Answer>): Promise<[answer: Answer, calls: number]> {
  const before = stand.origin.calls.length;
  const answer = await ask();
  const calls = stand.origin.calls.slice(before);
  return [answer, calls.filter(({ target }) => !target.endsWith("/config")).length];
}

function infer(body: object | Buffer, headers: Headers = {}, model = "cached"): Promise<Answer> {
  return stand.http.infer(model, body, { "X-API-Key": key, ...headers });
}

/** How many of these calls, one after the other, reached the origin. */
async function reached(...asks: readonly (() => Promise<Answer>)[]): Promise<readonly number[]> {
  const all: number[] = [];
  for (const ask of asks) {
    const [answer, calls] = await counted(ask);
    expect(answer.status).toBe(200);
    all.push(calls);
  }
  return all;
}

function get(path: string, headers: Headers = {}): Promise<Answer> {
  return stand.http.ask("GET", path, undefined, { "X-API-Key": key, ...headers });
}

describe("the edge cache, with answers to infer calls", () => {
  it("answers the same call again, and the origin hears nothing of it", async () => {
    const body = rowOf(value, 1);
    const [first, firstCalls] = await counted(() => infer(body));
    const [second, secondCalls] = await counted(() => infer(body));
    expect([firstCalls, secondCalls]).toEqual([1, 0]);
    expect(second.text).toBe(first.text);
    expect(JSON.parse(first.text).outputs[0].data).toEqual([value * 3, 3]);
    expect(first.headers["server-timing"]).toMatch(/^edge;dur=\d+$/u);
    expect(second.headers["server-timing"]).toMatch(/^edge;dur=\d+;desc=hit$/u);
    for (const { headers } of [first, second])
      expect(headers).not.toHaveProperty("tidepool-edge-cache");
  });

  it("gives each call its own id, as text and before binary data", async () => {
    const json = rowOf(value, 1);
    const ids = ["", "7", 'a "quoted" one, é', ""];
    const answers = [];
    for (const id of ids)
      answers.push(await counted(() => infer(id === "" ? json : { id, ...json })));
    expect(answers.map(([, calls]) => calls)).toEqual([1, 0, 0, 0]);
    for (const [i, [{ text }]] of answers.entries()) {
      const { id = "", ...rest } = JSON.parse(text);
      expect(id).toBe(ids[i]);
      expect(rest).toEqual(JSON.parse(answers[0]?.[0].text ?? ""));
    }
    const tail = Buffer.from(Float32Array.of(value, 2).buffer);
    const input = {
      name: "x",
      datatype: "FP32",
      shape: [1, 2],
      parameters: { binary_data_size: 8 },
    };
    const outputs = [{ name: "y", parameters: { binary_data: true } }];
    for (const [id, calls] of [
      ["one", 1],
      ["another", 0],
    ] as const) {
      const [answer, reachedOrigin] = await counted(() =>
        infer(...binaryInfer({ id, inputs: [input], outputs }, tail)),
      );
      expect(reachedOrigin).toBe(calls);
      const headLength = Number(answer.headers["inference-header-content-length"]);
      expect(JSON.parse(answer.bytes.toString("utf8", 0, headLength)).id).toBe(id);
      const bytes = answer.bytes.subarray(headLength);
      expect(bytes).toEqual(Buffer.from(Float32Array.of(value * 3, 6).buffer));
    }
  });

  it("knows equal requests however they are written, and unequal ones", async () => {
    const tail = Buffer.from(Float32Array.of(value, 1).buffer);
    const input = {
      name: "x",
      datatype: "FP32",
      shape: [1, 2],
      parameters: { binary_data_size: 8 },
    };
    expect(
      await reached(
        () => infer(rowOf(value, 1)),
        () => infer(...binaryInfer({ inputs: [input] }, tail)),
        () => infer({ ...rowOf(value, 1), parameters: { priority: 2, timeout: 9_000_000 } }),
        () => infer(rowOf(value, 2)),
        () => infer({ ...rowOf(value, 1), outputs: [{ name: "y" }] }),
        () => infer({ ...rowOf(value, 1), parameters: { binary_data_output: true } }),
      ),
    ).toEqual([1, 0, 0, 1, 1, 1]);
  });

  it("never shows one tenant what another has asked", async () => {
    const other = await stand.key({ tenant: "blue" });
    const same = await stand.key();
    const body = rowOf(value, 1);
    const as = (one: string) => () => infer(body, { "X-API-Key": one });
    expect(await reached(as(key), as(other), as(same), as(other))).toEqual([1, 1, 0, 0]);
  });

  it("answers nobody who may not infer, and nothing of models that do not exist for the caller", async () => {
    const body = rowOf(value, 1);
    expect((await infer(body)).status).toBe(200);
    for (const purpose of [{ scopes: ["read"] as const }, { models: ["plain"] }]) {
      const answer = await infer(body, { "X-API-Key": await stand.key(purpose) });
      expect(answer.status).toBe(403);
    }
  });

  it("stays out of it where the client says so", async () => {
    const body = rowOf(value, 1);
    const control = (text: string) => () => infer(body, { "Cache-Control": text });
    const plain = () => infer(body);
    expect(await reached(control("no-store"), plain, control("no-cache"), plain)).toEqual([
      1, 1, 1, 0,
    ]);
    expect(
      await reached(control("no-store"), () =>
        infer({ ...body, parameters: { cache_control: "no-store" } }),
      ),
    ).toEqual([1, 1]);
  });

  it("keeps nothing of models whose config does not say so, of failures, and of what is not a plain call", async () => {
    const body = rowOf(value, 1);
    expect(
      await reached(
        () => infer(body, {}, "plain"),
        () => infer(body, {}, "plain"),
      ),
    ).toEqual([1, 1]);
    const origin = () => infer(body, { Origin: "https://app.example" });
    expect(await reached(origin, origin)).toEqual([1, 1]);
    const wrong = { inputs: [{ name: "z", datatype: "FP32", shape: [1, 2], data: [1, 2] }] };
    for (const _ of [1, 2]) {
      const [{ status }, calls] = await counted(() => infer(wrong));
      expect([status, calls]).toEqual([400, 1]);
    }
    const [{ status }, calls] = await counted(() => infer(body, { Prefer: "respond-async" }));
    expect([status, calls]).toEqual([202, 1]);
  });

  it("keeps no answer of another version than the one that it looked for", async () => {
    expect(await reached(() => infer(rowOf(value, 1)))).toEqual([1]);
    stand.origin.more = { "tidepool-edge-cache": "1.another" };
    const other = rowOf(value, 2);
    expect(await reached(() => infer(other))).toEqual([1]);
    stand.origin.more = {};
    expect(await reached(() => infer(other))).toEqual([1]);
  });

  it("keeps nothing of bodies that it does not read", async () => {
    const large = { ...rowOf(value, 1), id: "a".repeat(1_100_000) };
    const ask = (): Promise<Answer> => infer(large);
    expect(await reached(ask, ask)).toEqual([1, 1]);
  });

  it("answers a call to a version and one to the model alike, each from its own place", async () => {
    const asks = ["cached", "cached/versions/1", "cached/versions/1", "cached"].map(
      (model) => () => infer(rowOf(value, 1), {}, model),
    );
    expect(await reached(...asks)).toEqual([1, 1, 0, 0]);
  });
});

describe("the edge cache, with metadata", () => {
  it("answers it for a short time, without the origin", async () => {
    for (const path of [
      "/v2",
      "/v2/models/plain",
      "/v2/models/plain/versions/1",
      "/v2/models/cached/config",
    ]) {
      const before = stand.origin.calls.length;
      const [first, second] = [await get(path), await get(path)];
      expect(first.status).toBe(200);
      expect(second.text).toBe(first.text);
      expect(second.headers["content-type"]).toBe("application/json");
      expect(second.headers["server-timing"]).toContain("desc=hit");
      expect(second.headers).not.toHaveProperty("cache-control");
      expect(stand.origin.calls.length).toBe(before + 1);
    }
  });

  it("does so only for those who may read about the model", async () => {
    expect((await get("/v2/models/plain")).status).toBe(200);
    const other = await stand.key({ models: ["cached"] });
    expect((await get("/v2/models/plain", { "X-API-Key": other })).status).toBe(403);
    const inferring = await stand.key({ scopes: ["infer"] });
    expect((await get("/v2/models/plain", { "X-API-Key": inferring })).status).toBe(403);
  });

  it.each([
    "/v2/models/stats",
    "/v2/models/plain/stats",
    "/v2/models/plain/ready",
    "/v2/health/ready",
    "/v2/models/nobody",
  ])("asks the origin each time for %s", async (path) => {
    const before = stand.origin.calls.length;
    await get(path);
    await get(path);
    expect(stand.origin.calls.length).toBe(before + 2);
  });
});

async function secondOutput(): Promise<number> {
  return JSON.parse((await infer(rowOf(value, 1))).text).outputs[0].data[1];
}

describe("the edge cache, after a reload", () => {
  it("answers nothing from before it when METADATA_SECONDS have passed", async () => {
    expect(await secondOutput()).toBe(3);
    expect(await reached(() => infer(rowOf(value, 1)))).toEqual([0]);
    stand.models.write("cached/1/model.onnx", timesModel(5));
    const admin = await stand.key({ scopes: ["models"] });
    const loaded = await stand.gateway.post("/v2/repository/models/cached/load", "{}", {
      "X-API-Key": admin,
    });
    expect(loaded.status).toBe(200);
    await eventually(async () => expect(await secondOutput()).toBe(5), 10_000);
    expect(await reached(() => infer(rowOf(value, 1)))).toEqual([0]);
    expect(await secondOutput()).toBe(5);
  });
});
