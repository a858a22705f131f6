import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { deploy, type Deployment } from "../../helpers/deployment.ts";
import { edgeSecret } from "../../helpers/edge-worker.ts";
import { signedCall, type SignedCall } from "../../helpers/edge-words.ts";
import type { Answer, Headers, HttpClient } from "../../helpers/http-client.ts";
import { ModelDirectory } from "../../helpers/model-directory.ts";
import { rowOf, timesModel } from "../../helpers/times-model.ts";

const folder = mkdtempSync(path.join(tmpdir(), "tidepool-edge-"));
const models = new ModelDirectory();
let deployment: Deployment;
beforeAll(async () => {
  const secrets = path.join(folder, "secrets");
  writeFileSync(secrets, edgeSecret);
  models.model("cached", { 1: timesModel(3) }, "response_cache { enable: true } max_batch_size: 8");
  deployment = await deploy({
    models: models.path,
    gateways: 2,
    flags: ["--cache-config=local,size=1048576"],
    gatewayFlags: () => [`--edge-secret-file=${secrets}`],
  });
}, 120_000);
afterAll(async () => {
  await deployment.stop();
  models.remove();
  rmSync(folder, { recursive: true });
});

const body = JSON.stringify(rowOf(1, 2));
const infer: SignedCall = { method: "POST", target: "/v2/models/cached/infer", body };
const config: SignedCall = { method: "GET", target: "/v2/models/cached/config" };

async function ask(
  http: HttpClient | undefined,
  { method, target, body: sent }: SignedCall,
  headers: Headers,
): Promise<Answer | undefined> {
  return http?.ask(method, target, sent, headers);
}

describe("two gateways behind an edge Worker", () => {
  it("take each of its words once, whichever gets it", async () => {
    const headers = signedCall(infer);
    const [first, ...others] = deployment.gateways.map(({ http }) => http);
    expect((await ask(first, infer, headers))?.status).toBe(200);
    for (const http of [...others, first]) {
      const again = await ask(http, infer, headers);
      expect([again?.status, again?.text]).toEqual([
        401,
        expect.stringContaining("it was used before"),
      ]);
    }
  });

  it("tell it of the same version by the same digest", async () => {
    const kinds = [];
    for (const { http } of deployment.gateways) {
      for (const call of [config, infer]) {
        kinds.push((await ask(http, call, signedCall(call)))?.headers["tidepool-edge-cache"]);
      }
    }
    expect(new Set(kinds).size).toBe(1);
    expect(kinds[0]).toMatch(/^1\.[\w-]{43}$/u);
  });
});
