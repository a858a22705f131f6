import { hash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newApiKey } from "../../../auth/api-key.ts";
import { fileKeyStore } from "../../../auth/file-key-store.ts";
import { revokeKey, rotateKey } from "../../../auth/key-changes.ts";
import { edgeKeyName } from "../../../protocol/edge-key.ts";
import { eventually } from "../../helpers/eventually.ts";
import { type Answer, errorOf, type Headers } from "../../helpers/http-client.ts";
import { rowOf } from "../../helpers/times-model.ts";
import { type EdgeStand, startEdgeStand } from "./edge-stand.ts";

let stand: EdgeStand;
beforeAll(async () => {
  stand = await startEdgeStand({ METADATA_SECONDS: 0 });
}, 90_000);
afterAll(() => stand.stop());

function infer(headers: Headers, model = "plain"): Promise<Answer> {
  return stand.http.infer(model, rowOf(1, 2), headers);
}

async function statusWith(key: string): Promise<number> {
  return (await infer({ "X-API-Key": key })).status;
}

describe("the edge Worker, with API keys", () => {
  it("takes a key as a bearer and as X-API-Key, and hands the call on without it", async () => {
    const key = await stand.key();
    const answers = [
      await infer({ "X-API-Key": key }),
      await infer({ Authorization: `Bearer ${key}` }),
    ];
    for (const { status, text } of answers) {
      expect(status).toBe(200);
      expect(JSON.parse(text).outputs[0].data).toEqual([2, 4]);
    }
    expect(stand.origin.calls.length).toBeGreaterThan(1);
    expect(JSON.stringify(stand.origin.calls)).not.toContain(key.slice(-43));
  });

  it("refuses calls without one, and with one that is none, before an origin hears of it", async () => {
    const key = await stand.key();
    const calls = stand.origin.calls.length;
    const refused: readonly Headers[] = [
      {},
      { "X-API-Key": newApiKey().text },
      { "X-API-Key": newApiKey(key.slice(3, 15)).text },
      { "X-API-Key": key.toUpperCase() },
      { "X-API-Key": "tp_" },
      { Authorization: key },
      { Authorization: `Basic ${key}` },
      { Authorization: `Bearer ${key}`, "X-API-Key": "other" },
    ];
    for (const headers of refused) {
      const answer = await infer(headers);
      expect(answer.status).toBe(401);
      expect(answer.headers["www-authenticate"]).toBe('Bearer realm="tidepool"');
      expect(errorOf(answer)).toMatch(/^credentials: given |^API key: given one/u);
    }
    expect((await stand.http.post(`/v2/models/plain/infer?api_key=${key}`, "{}")).status).toBe(401);
    expect(stand.origin.calls.length).toBe(calls);
  });

  it("leaves it to the gateway to say what a key may not", async () => {
    const [reader, other] = [
      await stand.key({ scopes: ["read"] }),
      await stand.key({ models: ["other*"] }),
    ];
    const noScope = await infer({ "X-API-Key": reader });
    expect([noScope.status, errorOf(noScope)]).toEqual([
      403,
      "scope: the caller has read, expected infer",
    ]);
    expect(await statusWith(other)).toBe(403);
    const metadata = await stand.http.ask("GET", "/v2/models/plain", undefined, {
      "X-API-Key": other,
    });
    expect(metadata.status).toBe(403);
  });

  it("knows when a key or the secret before a rotation ends", async () => {
    const key = await stand.key();
    const { key: next } = await rotateKey(stand.store, key.slice(3, 15), Date.now() + 600_000);
    await eventually(async () => expect(await statusWith(next.text)).toBe(200));
    expect(await statusWith(key)).toBe(200);
    await rotateKey(stand.store, key.slice(3, 15), Date.now());
    await eventually(async () => expect(await statusWith(key)).toBe(401));
    expect(await statusWith(await stand.key({ expiresAt: Date.now() + 600_000 }))).toBe(200);
    const ended = newApiKey();
    await stand.edge.keys.put(edgeKeyName(ended.id), JSON.stringify(recordOf(ended.text, 1)));
    const calls = stand.origin.calls.length;
    expect(await statusWith(ended.text)).toBe(401);
    expect(stand.origin.calls.length).toBe(calls);
  });

  it("lets a key in that it has not seen revoked, which the gateway then refuses", async () => {
    const key = await stand.key();
    expect(await statusWith(key)).toBe(200);
    // Past the namespace, as if it had not heard of it yet.
    await revokeKey(fileKeyStore(stand.keyFile), key.slice(3, 15));
    const revokedAt = performance.now();
    await eventually(async () => expect(await statusWith(key)).toBe(401), 2000);
    expect(performance.now() - revokedAt).toBeLessThan(2000);
    expect(await stand.edge.keys.get(edgeKeyName(key.slice(3, 15)))).not.toBeNull();
  });

  it("believes no record that it cannot read", async () => {
    const calls = stand.origin.calls.length;
    for (const text of ["{", "[]", "null", "{}", '{"sha256":1}']) {
      const key = newApiKey();
      await stand.edge.keys.put(edgeKeyName(key.id), text);
      expect([401, 503]).toContain(await statusWith(key.text));
    }
    expect(stand.origin.calls.length).toBe(calls);
  });
});

describe("the edge Worker, without a key", () => {
  it("hands probes on, and what browsers ask before a call", async () => {
    expect((await stand.http.get("/v2/health/ready")).status).toBe(200);
    const options = await stand.http.ask("OPTIONS", "/v2");
    // The gateway asks for a key there, or answers by its settings.
    expect(options.headers["server-timing"]).toContain("edge;dur=");
    expect((await stand.http.get("/v2/models/plain/ready")).status).toBe(401);
    expect((await stand.http.get("/v2/health/live/")).status).toBe(401);
  });

  it("answers nobody who wants another protocol", async () => {
    const key = await stand.key();
    const grpc = { "X-API-Key": key, "Content-Type": "application/grpc" };
    expect(
      (await stand.http.post("/inference.GRPCInferenceService/ServerLive", "", grpc)).status,
    ).toBe(501);
  });
});

function recordOf(text: string, expiresAt: number): object {
  return {
    id: text.slice(3, 15),
    name: "a",
    tenant: "default",
    scopes: ["infer"],
    models: ["*"],
    createdAt: 0,
    expiresAt,
    sha256: hash("sha256", text, "hex"),
  };
}
