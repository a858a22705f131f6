import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import { eventually } from "../../helpers/eventually.ts";
import { type Answer, errorOf, type Headers } from "../../helpers/http-client.ts";
import { echo } from "../../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { type KeyDesk, openKeyDesk } from "../key-desk.ts";
import { openLimits } from "../limit-stand.ts";
import { HttpStand } from "./http-stand.ts";

const twoItems = { inputs: [{ name: "IN0", datatype: "FP32", shape: [2, 1], data: [1, 2] }] };
const refusal = "items a day of key 'ci': given 2 more, expected at most 5";

let desk: KeyDesk;
let http: HttpStand;
let key: string;
/** What the model fails with. */
let outcome: InferenceError | undefined;
beforeEach(async () => {
  desk = await openKeyDesk();
  const { admission } = openLimits({});
  http = await HttpStand.start({ access: desk.access, admission });
  const config = {
    maxBatchSize: 8,
    input: [modelInput("IN0", "TYPE_FP32", [1])],
    output: [modelOutput("OUT0", "TYPE_FP32", [1])],
  };
  http.engine.add(servedModel("moody", config), (request) => {
    if (outcome) throw outcome;
    return [echo(request)];
  });
  outcome = new InferenceError(StatusCode.Internal, "out of order");
  key = await desk.key({ name: "ci", limits: { dailyItems: 5 } });
});
afterEach(async () => {
  await http.stop();
  desk.close();
});

function infer(headers: Headers): Promise<Answer> {
  return http.infer("moody", twoItems, { "X-API-Key": key, ...headers });
}

function replay(id: string): Promise<Answer> {
  return http.ask("POST", `/v2/jobs/${id}/replay`, "", { "X-API-Key": key });
}

async function stateOf(id: string): Promise<string> {
  const answer = await http.ask("GET", `/v2/jobs/${id}`, undefined, { "X-API-Key": key });
  return JSON.parse(answer.text).state;
}

function untilState(id: string, state: string): Promise<void> {
  return eventually(async () => expect(await stateOf(id)).toBe(state));
}

async function failedJob(): Promise<string> {
  const { id } = JSON.parse((await infer({ Prefer: "respond-async" })).text);
  await untilState(id, "failed");
  return id;
}

describe("POST /v2/jobs/{id}/replay", () => {
  it("is charged with the items of its request, and refused as a new one is", async () => {
    const id = await failedJob();
    const replayed = await replay(id);
    expect(replayed.status).toBe(202);
    expect(replayed.headers["ratelimit"]).toMatch(/^"key-daily-items";r=1;t=\d+$/u);
    await untilState(id, "failed");
    outcome = undefined;
    const refused = await replay(id);
    expect([refused.status, errorOf(refused)]).toEqual([429, refusal]);
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    expect(await stateOf(id)).toBe("failed");
    await desk.limit(key, { dailyItems: 20 });
    expect((await replay(id)).status).toBe(202);
    await untilState(id, "done");
  });

  it("is refused to who may not use its model any more", async () => {
    const id = await failedJob();
    const [record] = desk.store.records;
    if (!record) throw new Error("no key");
    await desk.store.replace(record, { ...record, models: ["another"] });
    desk.store.tell();
    await eventually(async () => expect((await replay(id)).status).toBe(403));
    expect(await stateOf(id)).toBe("failed");
  });
});

describe("Idempotency-Key", () => {
  it("charges a request that runs again because it has failed", async () => {
    const again = { "Idempotency-Key": "again" };
    expect((await infer(again)).status).toBe(500);
    expect((await infer(again)).status).toBe(500);
    const refused = await infer(again);
    expect([refused.status, errorOf(refused)]).toEqual([429, refusal]);
  });
});
