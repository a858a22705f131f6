import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { type Answer, errorOf, type Headers } from "../helpers/http-client.ts";
import { rawConnection } from "../helpers/raw-connection.ts";
import { HttpStand } from "./http/http-stand.ts";
import { type KeyDesk, openKeyDesk } from "./key-desk.ts";
import { HeldModel, type LimitStand, openLimits } from "./limit-stand.ts";

let desk: KeyDesk;
let http: HttpStand;
let held: HeldModel;
let limits: LimitStand;
beforeEach(async () => {
  desk = await openKeyDesk();
});
afterEach(async () => {
  await http.stop();
  desk.close();
});

async function start(...given: Parameters<typeof openLimits>): Promise<void> {
  limits = openLimits(...given);
  http = await HttpStand.start({ access: desk.access, admission: limits.admission });
  held = new HeldModel(http.engine);
}

function body(items: number, name = "IN0"): object {
  const data = Array.from({ length: 4 * items }, () => 1);
  return { inputs: [{ name, datatype: "FP32", shape: [items, 4], data }] };
}

/** Each way by which a request for work can come, and the headers that send it there. */
const ways: readonly (readonly [way: string, path: string, headers: Headers])[] = [
  ["the plain lane", "infer", {}],
  ["the fast lane", "infer", { "X-Other": "1" }],
  ["the router", "infer", { Expect: "100-continue" }],
  ["the router, with a body of any length", "infer", { "Transfer-Encoding": "chunked" }],
  ["the router, compressed to nothing", "infer", { "Content-Encoding": "identity" }],
  ["events", "infer", { Accept: "text/event-stream" }],
  ["jobs", "infer", { Prefer: "respond-async" }],
  ["jobs by a key of idempotency", "infer", { "Idempotency-Key": "a" }],
  ["generate", "generate", {}],
  ["generate_stream", "generate_stream", {}],
];

/** Two items, however they are asked for. */
function ask(path: string, headers: Headers, key: string): Promise<Answer> {
  const model = path === "infer" ? "batch" : "id_fp32";
  const json = path === "infer" ? body(2) : { IN0: [1, 2] };
  const unlike = headers["Idempotency-Key"] && { "Idempotency-Key": String(Math.random()) };
  return http.post(`/v2/models/${model}/${path}`, json, {
    "X-API-Key": key,
    ...headers,
    ...unlike,
  });
}

function hold(key: string, more: Headers = {}): Promise<Answer> {
  return http.infer("held", body(1, "INPUT"), { "X-API-Key": key, ...more });
}

/** The status of a request with so many items. */
async function statusOf(key: string, items: number): Promise<number> {
  return (await http.infer("batch", body(items), { "X-API-Key": key })).status;
}

describe("limits over HTTP", () => {
  it.each(ways)("count and tell of what comes by %s", async (_, path, headers) => {
    await start({});
    const items = path === "infer" ? 2 : 1;
    const key = await desk.key({ name: "ci", limits: { dailyItems: items, inFlight: 3 } });
    const answer = await ask(path, headers, key);
    expect([200, 202]).toContain(answer.status);
    const policy = `"key-in-flight";q=3;qu="concurrent-requests", "key-daily-items";q=${items};qu="items";w=86400`;
    expect(answer.headers["ratelimit-policy"]).toBe(policy);
    expect(answer.headers["ratelimit"]).toMatch(
      /^"key-in-flight";r=2, "key-daily-items";r=0;t=\d{1,5}$/u,
    );
    const refused = await ask(path, headers, key);
    expect(refused.status).toBe(429);
    expect(errorOf(refused)).toBe(
      `items a day of key 'ci': given ${items === 1 ? "one" : items} more, expected at most ${items}`,
    );
    expect(refused.headers["ratelimit-policy"]).toBe(policy);
    expect(refused.headers["ratelimit"]).toMatch(/"key-daily-items";r=0;t=\d{1,5}$/u);
    const seconds = Number(refused.headers["retry-after"]);
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(86_400);
    expect(limits.refused()).toEqual([["key-daily-items default", 1]]);
    expect([limits.admission.requests, limits.admission.bytes]).toEqual([0, 0]);
  });

  it.each(ways)("refuse one request too many in a second by %s", async (_, path, headers) => {
    await start({});
    const key = await desk.key({ limits: { requestsPerSecond: 1 } });
    // One of them is in a second with another.
    const answers = [await ask(path, headers, key), await ask(path, headers, key)];
    if (answers[1]?.status !== 429) answers.push(await ask(path, headers, key));
    const refused = answers.at(-1);
    expect(refused?.status).toBe(429);
    expect(refused?.headers["retry-after"]).toBe("1");
    expect(refused?.headers["ratelimit"]).toBe('"key-requests";r=0;t=1');
  });

  it("say nothing to callers who have none", async () => {
    await start({});
    for (const [, path, headers] of ways) {
      const answer = await ask(path, headers, await desk.key());
      expect([200, 202]).toContain(answer.status);
      expect(Object.keys(answer.headers).filter((name) => name.startsWith("rate"))).toEqual([]);
    }
  });

  it("are told in answers that are errors of another kind, too", async () => {
    await start({});
    const key = await desk.key({ limits: { requestsPerSecond: 9, dailyItems: 9 } });
    for (const more of [{}, { "X-Other": "1" }, { Expect: "100-continue" }]) {
      const answer = await http.infer("batch", { inputs: [] }, { "X-API-Key": key, ...more });
      expect(answer.status).toBe(400);
      expect(answer.headers["ratelimit"]).toMatch(/"key-daily-items";r=9;t=\d+$/u);
    }
  });

  it("hold a tenant's callers together, also those without keys of their own limits", async () => {
    await start({
      eachTenant: { dailyItems: 3 },
      eachKey: { dailyItems: 2 },
      tenants: new Map([["blue", { dailyItems: 100 }]]),
    });
    const [one, other] = [await desk.key({ tenant: "red" }), await desk.key({ tenant: "red" })];
    const blue = await desk.key({ tenant: "blue", limits: { dailyItems: 9 } });
    expect(await statusOf(one, 2)).toBe(200);
    expect(await statusOf(one, 1)).toBe(429);
    expect(await statusOf(other, 2)).toBe(429);
    expect(await statusOf(other, 1)).toBe(200);
    expect(await statusOf(other, 1)).toBe(429);
    expect(await statusOf(blue, 8)).toBe(200);
    expect(await statusOf(blue, 2)).toBe(429);
    expect(limits.refused()).toEqual([
      ["key-daily-items red", 1],
      ["key-daily-items blue", 1],
      ["tenant-daily-items red", 2],
    ]);
  });

  it("hold callers who are nobody by the tenant 'default'", async () => {
    limits = openLimits({ eachTenant: { dailyItems: 2 } });
    http = await HttpStand.start({ admission: limits.admission });
    expect((await http.infer("batch", body(2))).status).toBe(200);
    expect((await http.infer("batch", body(2))).status).toBe(429);
  });

  it("never let in more items at once than there ever are, and do not say when to come again", async () => {
    await start({});
    const key = await desk.key({ limits: { itemsPerSecond: 4 } });
    const answer = await http.infer("batch", body(5), { "X-API-Key": key });
    expect(answer.status).toBe(429);
    expect(answer.headers["retry-after"]).toBeUndefined();
  });

  it("take up other limits of a key at once, and keep what was spent", async () => {
    await start({});
    const key = await desk.key({ limits: { dailyItems: 2 } });
    const status = async (): Promise<number> =>
      (await http.infer("batch", body(1), { "X-API-Key": key })).status;
    expect([await status(), await status(), await status()]).toEqual([200, 200, 429]);
    await desk.limit(key, { dailyItems: 3 });
    expect([await status(), await status()]).toEqual([200, 429]);
    await desk.limit(key, {});
    expect(await status()).toBe(200);
  });
});

describe("requests in flight", () => {
  it("are bounded for a key, by every lane", async () => {
    await start({});
    const key = await desk.key({ name: "ci", limits: { inFlight: 3 } });
    const lanes: readonly Headers[] = [{}, { "X-Other": "1" }, { Expect: "100-continue" }];
    const waiting = lanes.map((more) => hold(key, more));
    await eventually(() => expect(held.waiting).toBe(3));
    for (const more of lanes) {
      const refused = await hold(key, more);
      expect(refused.status).toBe(429);
      expect(errorOf(refused)).toBe(
        "requests in flight of key 'ci': given one more, expected at most 3",
      );
      expect(refused.headers["retry-after"]).toMatch(/^\d+$/u);
      expect(refused.headers["ratelimit"]).toBe('"key-in-flight";r=0');
    }
    held.release();
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200]);
    const next = hold(key);
    await eventually(() => expect(held.waiting).toBe(1));
    held.release();
    expect((await next).status).toBe(200);
  });

  it("are bounded for the server and for each model: 503, with when to come again", async () => {
    await start({}, { maxRequests: 3, maxModelRequests: 2 });
    const key = await desk.key();
    const first = [hold(key), hold(key)];
    await eventually(() => expect(held.waiting).toBe(2));
    const ofModel = await hold(key);
    expect([ofModel.status, ofModel.headers["retry-after"]]).toEqual([503, "5"]);
    expect(errorOf(ofModel)).toBe(
      "requests in flight for model 'held': given one more, expected at most 2",
    );
    const other = new HeldModel(http.engine, "other");
    const headers = { "X-API-Key": key };
    const third = http.infer("other", body(1, "INPUT"), headers);
    await eventually(() => expect(other.waiting).toBe(1));
    const full = await http.infer("batch", body(1), headers);
    expect(full.status).toBe(503);
    expect(errorOf(full)).toBe(
      "requests in flight: given one more, expected at most 3 of all callers",
    );
    held.release();
    other.release();
    expect((await Promise.all([...first, third])).every(({ status }) => status === 200)).toBe(true);
    expect((await http.infer("batch", body(1), headers)).status).toBe(200);
    expect(limits.refused()).toEqual([
      ["model-requests default", 1],
      ["server-requests default", 1],
    ]);
  });

  it("hold no more bytes than there is room for", async () => {
    const json = JSON.stringify(body(1, "INPUT"));
    await start({}, { maxBytes: 2 * json.length });
    const key = await desk.key();
    const first = hold(key);
    await eventually(() => expect(held.waiting).toBe(1));
    expect(limits.admission.bytes).toBe(json.length);
    for (const more of [{}, { "X-Other": "1" }, { Expect: "100-continue" }]) {
      const refused = await http.infer("batch", body(8), { "X-API-Key": key, ...more });
      expect(refused.status).toBe(503);
      expect(errorOf(refused)).toContain("request bytes in flight: given ");
    }
    const second = hold(key);
    await eventually(() => expect(held.waiting).toBe(2));
    held.release();
    expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual([200, 200]);
    expect(limits.admission.bytes).toBe(0);
  });

  it("are refused before their bodies are sent", async () => {
    await start({}, { maxBytes: 1000 });
    const key = await desk.key();
    const head = `POST /v2/models/batch/infer HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nConnection: close\r\n`;
    for (const more of ["", "X-Other: 1\r\n", "Expect: 100-continue\r\n"]) {
      const text = `${head}${more}Content-Length: 500000\r\n\r\n`;
      const connection = await rawConnection(http.origin.slice(7), text);
      await eventually(() => expect(String(connection.received)).toContain("HTTP/1.1 503"));
      expect(String(connection.received)).not.toContain("100 Continue");
      connection.socket.destroy();
    }
  });
});

describe("an engine that is full", () => {
  it("has its 503 told with when to come again", async () => {
    await start({});
    const key = await desk.key();
    const { InferenceError, StatusCode } = await import("../../protocol/error.ts");
    http.engine.infer = () =>
      Promise.reject(new InferenceError(StatusCode.Unavailable, "Exceeds maximum queue size"));
    const answer = await http.infer("batch", body(1), { "X-API-Key": key });
    expect([answer.status, errorOf(answer)]).toEqual([503, "Exceeds maximum queue size"]);
    expect(answer.headers["retry-after"]).toBe("5");
  });
});
