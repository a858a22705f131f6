import { createHmac } from "node:crypto";
import { once } from "node:events";
import * as http2 from "node:http2";
import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newApiKey } from "../../auth/api-key.ts";
import { authenticator } from "../../auth/authenticator.ts";
import { createKey, revokeKey, rotateKey } from "../../auth/key-changes.ts";
import { KeyRing } from "../../auth/key-ring.ts";
import { scopes } from "../../auth/scope.ts";
import { remoteTokenKeys } from "../../auth/token-keys.ts";
import { TokenVerifier } from "../../auth/token-verifier.ts";
import { grpcNeeds, httpNeeds } from "../../gateway/policy.ts";
import { anyPurpose } from "../auth/key-store-cases.ts";
import { MemoryKeyStore } from "../auth/memory-key-store.ts";
import type { Headers } from "../helpers/http-client.ts";
import { SilentLog } from "../helpers/silent-log.ts";
import {
  audienceName,
  issuerName,
  startIssuer,
  type TokenIssuer,
} from "../helpers/token-issuer.ts";
import { GrpcStand } from "./grpc/grpc-stand.ts";
import { HttpStand } from "./http/http-stand.ts";

const all = { ...anyPurpose, scopes: [...scopes] };
const everything = { scope: scopes.join(" ") };
let issuer: TokenIssuer;
let impostor: TokenIssuer;
let ring: KeyRing;
let http: HttpStand;
let grpc: GrpcStand;
/** What each kind of caller shows; none of it is good, however much it might do. */
const bad = new Map<string, Headers>();
const good = new Map<string, Headers>();

beforeAll(async () => {
  [issuer, impostor] = await Promise.all([startIssuer(), startIssuer()]);
  const store = new MemoryKeyStore();
  await makeKeys(store);
  await makeTokens();
  ring = await KeyRing.open({ store, log: new SilentLog() });
  const tokens = new TokenVerifier({
    keys: remoteTokenKeys(issuer.url),
    issuer: issuerName,
    audience: audienceName,
    algorithms: ["ES256"],
    clockToleranceSeconds: 0,
    claims: { tenant: "tenant", scope: "scope", models: "models" },
  });
  const access = { authenticator: authenticator({ keys: ring, tokens }), healthAnonymous: false };
  [http, grpc] = await Promise.all([HttpStand.start({ access }), GrpcStand.start({ access })]);
});
afterAll(async () => {
  ring.close();
  issuer.close();
  impostor.close();
  await Promise.all([http.stop(), grpc.stop()]);
});

async function makeKeys(store: MemoryKeyStore): Promise<void> {
  const key = async (more = {}): Promise<string> =>
    (await createKey(store, { ...all, ...more }, Date.now())).key.text;
  const [valid, revoked, rotated] = [await key(), await key(), await key()];
  await revokeKey(store, revoked.slice(3, 15));
  await rotateKey(store, rotated.slice(3, 15), Date.now() - 1);
  bad.set("nothing", {});
  bad.set("an empty key", { "X-API-Key": "" });
  bad.set("a key that was never made", { "X-API-Key": newApiKey().text });
  bad.set("another secret for a key", { "X-API-Key": newApiKey(valid.slice(3, 15)).text });
  bad.set("a key in other letters", { "X-API-Key": valid.toUpperCase() });
  bad.set("a revoked key", { "X-API-Key": revoked });
  bad.set("the secret before a rotation", { Authorization: `Bearer ${rotated}` });
  bad.set("an expired key", { "X-API-Key": await key({ expiresAt: Date.now() - 1 }) });
  bad.set("a key as a password", { Authorization: `Basic ${btoa(`key:${valid}`)}` });
  bad.set("a bad key beside a good one", {
    "X-API-Key": newApiKey().text,
    Authorization: `Bearer ${valid}`,
  });
  good.set("a key", { "X-API-Key": valid });
}

function bearer(text: string): Headers {
  return { Authorization: `Bearer ${text}` };
}

function json(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

async function makeTokens(): Promise<void> {
  const token = await issuer.sign(everything);
  const [head = "", claims = "", signature = ""] = token.split(".");
  const past = Math.floor(Date.now() / 1000) - 10;
  const secret = JSON.stringify(issuer.keySet().keys[0]);
  const hmacHead = json({ alg: "HS256", kid: "1" });
  const hmac = createHmac("sha256", secret).update(`${hmacHead}.${claims}`).digest("base64url");
  bad.set("an expired token", bearer(await issuer.sign({ ...everything, exp: past })));
  bad.set("a token of later", bearer(await issuer.sign({ ...everything, nbf: past + 3600 })));
  bad.set("a token of an impostor", bearer(await impostor.sign(everything)));
  bad.set("a token for others", bearer(await issuer.sign({ ...everything, aud: "other" })));
  bad.set("a token of another issuer", bearer(await issuer.sign({ ...everything, iss: "other" })));
  bad.set("a token without a signature", bearer(`${head}.${claims}.`));
  bad.set("a token that asks for none", bearer(`${json({ alg: "none" })}.${claims}.`));
  bad.set("a token signed by the public key", bearer(`${hmacHead}.${claims}.${hmac}`));
  bad.set("a token with other claims", bearer(`${head}.${json(everything)}.${signature}`));
  bad.set("a token as a key", { "X-API-Key": token });
  good.set("a token", bearer(token));
}

const paths = Object.keys(httpNeeds).map((pattern) =>
  pattern.replaceAll(/:(?:model|region|repository|job)/gu, "batch"),
);
const methods = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"];

describe("a caller with bad credentials", () => {
  it("gets 401 on every path by every method over HTTP", async () => {
    expect(bad.size).toBe(20);
    for (const [kind, headers] of bad) {
      for (const path of paths) {
        const statuses = methods.map(async (method) => {
          const answer = await http.ask(method, path, Buffer.alloc(0), headers);
          return answer.status;
        });
        expect([kind, path, await Promise.all(statuses)]).toEqual([
          kind,
          path,
          methods.map(() => 401),
        ]);
      }
    }
  }, 60_000);

  it("gets UNAUTHENTICATED in every method over gRPC, whatever it would have sent", async () => {
    const session = http2.connect(`http://127.0.0.1:${grpc.port}`);
    for (const [kind, headers] of bad) {
      const codes = Object.keys(grpcNeeds).map(async (method) => {
        const isHealth = method === "Check" || method === "Watch";
        const service = isHealth ? "grpc.health.v1.Health" : "inference.GRPCInferenceService";
        const stream = session.request({
          ":method": "POST",
          ":path": `/${service}/${method}`,
          "content-type": "application/grpc",
          te: "trailers",
          ...headers,
        });
        const [head] = await once(stream, "response");
        return [method, Number(head["grpc-status"])];
      });
      expect([kind, await Promise.all(codes)]).toEqual([
        kind,
        Object.keys(grpcNeeds).map((method) => [method, status.UNAUTHENTICATED]),
      ]);
    }
    session.destroy();
  }, 60_000);

  it("differs from one with good ones", async () => {
    for (const [kind, headers] of good) {
      for (const path of paths) {
        const { status: code } = await http.ask("GET", path, Buffer.alloc(0), headers);
        expect([kind, path, code === 401 || code === 403]).toEqual([kind, path, false]);
      }
    }
  });
});

describe("a caller of another tenant", () => {
  it("finds no job of ours", async () => {
    const ours = good.get("a key") ?? {};
    const theirs = bearer(await issuer.sign({ ...everything, tenant: "b" }));
    const data = { name: "IN0", datatype: "FP32", shape: [1, 4], data: [1, 2, 3, 4] };
    const accepted = await http.infer(
      "batch",
      { inputs: [data] },
      { ...ours, Prefer: "respond-async" },
    );
    const id = String(accepted.headers.location).split("/").at(-1) ?? "";
    const ofJobs = Object.keys(httpNeeds).filter((path) => path.includes(":job"));
    expect(ofJobs.length).toBeGreaterThan(3);
    for (const path of ofJobs) {
      for (const method of ["GET", "POST", "DELETE"]) {
        const answer = await http.ask(method, path.replace(":job", id), Buffer.alloc(0), theirs);
        expect([method, path, [404, 405]]).toEqual([
          method,
          path,
          expect.arrayContaining([answer.status]),
        ]);
      }
    }
    const list = await http.ask("GET", "/v2/jobs", Buffer.alloc(0), theirs);
    expect(JSON.parse(list.text).jobs).toEqual([]);
    expect((await http.ask("GET", `/v2/jobs/${id}`, Buffer.alloc(0), ours)).status).toBe(200);
  });
});
