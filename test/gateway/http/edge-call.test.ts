import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EdgeTrust, wordLifeMilliseconds } from "../../../auth/edge-trust.ts";
import { wordsInMemory } from "../../../auth/used-words.ts";
import type { HttpOptions } from "../../../gateway/http/options.ts";
import type { ApiCategory } from "../../../gateway/api-category.ts";
import type { Restriction } from "../../../gateway/restrictions.ts";
import { edgeSecret } from "../../helpers/edge-worker.ts";
import { signedCall, type SignedCall } from "../../helpers/edge-words.ts";
import { type Answer, errorOf } from "../../helpers/http-client.ts";
import { type KeyDesk, openKeyDesk } from "../key-desk.ts";
import { HttpStand } from "./http-stand.ts";

let desk: KeyDesk;
let http: HttpStand;
beforeEach(async () => {
  desk = await openKeyDesk();
});
afterEach(async () => {
  await http.stop();
  desk.close();
});

async function start(more: Partial<HttpOptions> = {}): Promise<void> {
  const used = wordsInMemory(wordLifeMilliseconds);
  const edge = new EdgeTrust({ secrets: [edgeSecret], keys: undefined, used });
  http = await HttpStand.start({ access: { ...desk.access, edge }, ...more });
  http.engine.answersDigest = (name) => (name === "batch" ? "1.digest" : undefined);
}

const body = JSON.stringify({
  inputs: [{ name: "IN0", datatype: "FP32", shape: [1, 4], data: [1, 2, 3, 4] }],
});

function ask(call: SignedCall, sent = call.body): Promise<Answer> {
  return http.ask(call.method, call.target, sent, signedCall(call));
}

function infer(model: string, claims: object = {}): Promise<Answer> {
  return ask({ method: "POST", target: `/v2/models/${model}/infer`, body, claims });
}

/** What the edge is told of answers. */
async function kindOf(path: string): Promise<unknown> {
  const answer = await ask({ method: "GET", target: path });
  expect(answer.status).toBe(200);
  return answer.headers["tidepool-edge-cache"];
}

describe("a call that the edge Worker has signed", () => {
  it("is that of the caller whom it names, with no more than that caller may", async () => {
    await start();
    expect((await infer("batch")).status).toBe(200);
    const noScope = await infer("batch", { scope: "read" });
    expect([noScope.status, errorOf(noScope)]).toEqual([
      403,
      "scope: the caller has read, expected infer",
    ]);
    expect((await infer("batch", { models: "pair" })).status).toBe(403);
    expect((await infer("batch", { sub: 1 })).status).toBe(401);
    expect((await infer("batch", { models: 1 })).status).toBe(401);
  });

  it("is refused when its body is another one, on whichever way that is read", async () => {
    await start();
    const paths = ["infer", "generate", "generate_stream"].map((end) => `/v2/models/batch/${end}`);
    for (const target of [...paths, "/v2/repository/models/batch/load"]) {
      const claims = { scope: "infer models" };
      const answer = await ask({ method: "POST", target, body, claims }, `${body} `);
      expect([answer.status, errorOf(answer)]).toEqual([
        401,
        "the edge's word for a call: its body is not the one that was signed",
      ]);
    }
    expect(http.engine.loaded).toEqual([]);
  });

  it("needs no word to be refused, or let in by a key, as ever", async () => {
    await start();
    const key = { "X-API-Key": await desk.key() };
    expect((await http.infer("batch", body, { ...key, "tidepool-edge": "a" })).status).toBe(200);
    expect((await http.infer("batch", body)).status).toBe(401);
    const own = await http.ask("GET", "/v2", undefined, key);
    expect(own.headers).not.toHaveProperty("tidepool-edge-cache");
  });
});

describe("the edge Worker", () => {
  it("is told what it may keep, and of which version", async () => {
    await start();
    const { headers } = await infer("batch");
    expect(headers["tidepool-edge-cache"]).toBe("1.digest");
    expect((await infer("id_fp32")).headers).not.toHaveProperty("tidepool-edge-cache");
    expect(await kindOf("/v2")).toBe("metadata");
    expect(await kindOf("/v2/models/batch")).toBe("metadata");
    expect(await kindOf("/v2/models/batch/config")).toBe("1.digest");
    expect(await kindOf("/v2/models/pair/config")).toBe("metadata");
    expect(await kindOf("/v2/models/batch/stats")).toBeUndefined();
  });

  it("is told nothing of an answer that another version may have given", async () => {
    await start();
    let loads = 0;
    http.engine.answersDigest = () => `1.digest-${loads++}`;
    expect((await infer("batch")).headers).not.toHaveProperty("tidepool-edge-cache");
  });

  it("may not answer where callers must show another header, or headers change the answer", async () => {
    const restriction: Restriction = { key: "x-let-me", value: "in" };
    const restrictions = new Map<ApiCategory, Restriction>([
      ["inference", restriction],
      ["metadata", restriction],
    ]);
    await start({ restrictions });
    const headers = { "x-let-me": "in" };
    const inference = { method: "POST", target: "/v2/models/batch/infer", body, headers };
    const metadata = { method: "GET", target: "/v2", headers };
    for (const answer of [await ask(inference), await ask(metadata)]) {
      expect(answer.status).toBe(200);
      expect(answer.headers).not.toHaveProperty("tidepool-edge-cache");
    }
    await http.stop();
    await start({ headerForwardPattern: /^x-/u });
    expect((await ask({ ...inference, headers: {} })).headers).not.toHaveProperty(
      "tidepool-edge-cache",
    );
  });
});
