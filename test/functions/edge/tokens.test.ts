import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../helpers/eventually.ts";
import type { Answer } from "../../helpers/http-client.ts";
import { rowOf } from "../../helpers/times-model.ts";
import {
  audienceName,
  issuerName,
  startIssuer,
  type TokenIssuer,
} from "../../helpers/token-issuer.ts";
import { type EdgeStand, startEdgeStand } from "./edge-stand.ts";

let issuer: TokenIssuer;
let stand: EdgeStand;
beforeAll(async () => {
  issuer = await startIssuer();
  stand = await startEdgeStand({
    JWT_JWKS_URL: issuer.url.href,
    JWT_ISSUER: issuerName,
    JWT_AUDIENCE: audienceName,
    JWT_MODELS_CLAIM: "may_use",
  });
}, 90_000);
afterAll(async () => {
  await stand.stop();
  issuer.close();
});

function infer(token: string, model = "plain"): Promise<Answer> {
  return stand.http.infer(model, rowOf(1, 2), { Authorization: `Bearer ${token}` });
}

async function statusWith(claims: object, head: object = {}): Promise<number> {
  return (await infer(await issuer.sign({ ...claims }, head))).status;
}

/** As somebody makes it who has no key. */
function unsigned(head: object): string {
  const parts = [head, { iss: issuerName, aud: audienceName, sub: "a", exp: 4e9, scope: "infer" }];
  return `${parts.map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".")}.`;
}

function reached(): number {
  return stand.origin.calls.filter(({ target }) => target.endsWith("/infer")).length;
}

describe("the edge Worker, with tokens", () => {
  it("takes one of the issuer's, and the gateway takes its word for what it may", async () => {
    expect(await statusWith({})).toBe(200);
    expect(await statusWith({ scope: ["infer"], may_use: ["pl*"] })).toBe(200);
    expect(await statusWith({ scope: "read" })).toBe(403);
    expect(await statusWith({ scope: undefined })).toBe(403);
    expect(await statusWith({ may_use: "cached other*" })).toBe(403);
    expect(JSON.stringify(stand.origin.calls)).not.toContain("eyJ");
  });

  it("refuses one that is expired, for others, or not the issuer's, before an origin hears of it", async () => {
    const calls = stand.origin.calls.length;
    const now = Math.floor(Date.now() / 1000);
    const good = await issuer.sign();
    const others = await startIssuer();
    const tokens = [
      await issuer.sign({ exp: now - 60 }),
      await issuer.sign({ exp: undefined }),
      await issuer.sign({ nbf: now + 60 }),
      await issuer.sign({ aud: "other" }),
      await issuer.sign({ iss: "https://other.example" }),
      await issuer.sign({ sub: undefined }),
      await issuer.sign({ tenant: 1 }),
      await issuer.sign({ tenant: "gr/een" }),
      await others.sign(),
      unsigned({ alg: "none" }),
      unsigned({ alg: "HS256", kid: "1" }),
      `${good.slice(0, -3)}abc`,
      "a.b.c",
      "a",
    ];
    others.close();
    for (const token of tokens) {
      const answer = await infer(token);
      expect([answer.status, answer.text]).toEqual([
        401,
        '{"error":"token: given one that is not valid"}',
      ]);
    }
    expect((await stand.http.infer("plain", rowOf(1, 2), { "X-API-Key": good })).status).toBe(401);
    expect(stand.origin.calls.length).toBe(calls);
  });

  it("keeps answers of one tenant from others", async () => {
    const calls: number[] = [];
    for (const tenant of ["blue", "gr.een", "blue", "gr.een"]) {
      const before = reached();
      const token = await issuer.sign({ tenant, sub: `of ${tenant}` });
      expect((await infer(token, "cached")).status).toBe(200);
      calls.push(reached() - before);
    }
    expect(calls).toEqual([1, 1, 0, 0]);
  });

  it("takes new keys of the issuer, and says 503 while they cannot be had", async () => {
    await issuer.rotate(false);
    const token = await issuer.sign();
    issuer.failure = 500;
    await eventually(async () => expect((await infer(token)).status).toBe(503));
    issuer.failure = undefined;
    await eventually(async () => expect((await infer(token)).status).toBe(200));
  });
});
