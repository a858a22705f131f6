import { copyFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Metadata, status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { deploy, type Deployment } from "../helpers/deployment.ts";
import { eventually } from "../helpers/eventually.ts";
import { GrpcClient } from "../helpers/grpc-client.ts";
import { type Answer, HttpClient } from "../helpers/http-client.ts";
import { keysCommand } from "../helpers/keys-command.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { type Serving, startServing, stopServing } from "../helpers/serving.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";
import {
  audienceName,
  issuerName,
  startIssuer,
  type TokenIssuer,
} from "../helpers/token-issuer.ts";

const models = new ModelDirectory();
models.model("steady", { 1: addingModel(1) });
afterAll(() => models.remove());

async function inferStatus(http: HttpClient, key: string): Promise<number> {
  return (await http.infer("steady", addingBody, { "X-API-Key": key })).status;
}

async function grpcStatus(grpc: GrpcClient, header: string, value: string): Promise<unknown> {
  const metadata = new Metadata();
  metadata.set(header, value);
  const asked = grpc.ask("ServerMetadata", {}, { metadata });
  return asked.then(
    () => status.OK,
    (error: unknown) => (error instanceof Error && "code" in error ? error.code : error),
  );
}

/** Asks until the key is refused; what is sent two seconds later must be. */
async function expectRefused(http: HttpClient, key: string, revokedAt: number): Promise<void> {
  while (performance.now() < revokedAt + 2000) {
    if ((await inferStatus(http, key)) === 401) return;
    await sleep(20);
  }
  expect(await inferStatus(http, key)).toBe(401);
}

describe("keys of serve", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "tidepool-keys-"));
  const file = path.join(folder, "keys.json");
  const where = `--api-keys=${file}`;
  let server: TidepoolProcess;
  let http: HttpClient;
  let grpc: GrpcClient;
  beforeAll(async () => {
    await keysCommand("create", where, "--key-name=first");
    const args = [`--model-repository=${models.path}`, where, "--http-address=0.0.0.0"];
    server = await startTidepool(args);
    http = new HttpClient(server.http.replace("0.0.0.0", "127.0.0.1"));
    grpc = new GrpcClient(server.grpc);
  }, 60_000);
  afterAll(async () => {
    http.close();
    grpc.close();
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  it("are asked for on any address, as the server says when it starts", async () => {
    const line = server.lines.find((one) => one["http"] !== undefined);
    expect(line?.msg).toBe("serving; callers must show an API key or a token");
    expect((await http.get("/v2")).status).toBe(401);
    expect((await http.get("/v2/health/ready")).status).toBe(200);
    const scrape = await fetch(`http://${server.metrics.replace("0.0.0.0", "127.0.0.1")}/metrics`);
    expect(scrape.status).toBe(401);
  });

  it("count soon after they are made, for both transports, and no longer once revoked", async () => {
    const key = (await keysCommand("create", where, "--key-name=ci")).out;
    await eventually(async () => expect(await inferStatus(http, key)).toBe(200));
    expect(await grpcStatus(grpc, "x-api-key", key)).toBe(status.OK);
    await keysCommand("revoke", key.slice(3, 15), where);
    await expectRefused(http, key, performance.now());
    expect(await grpcStatus(grpc, "x-api-key", key)).toBe(status.UNAUTHENTICATED);
  }, 30_000);

  it("with a bound see nothing of other models", async () => {
    const key = (await keysCommand("create", where, "--key-name=a", "--key-model=other*")).out;
    const headers = { "X-API-Key": key };
    const stats = (): Promise<Answer> => http.ask("GET", "/v2/models/stats", undefined, headers);
    await eventually(async () => expect((await stats()).status).toBe(200));
    expect(JSON.parse((await stats()).text)).toEqual({ model_stats: [] });
    expect((await http.post("/v2/repository/index", "", headers)).text).toBe("[]");
    expect(await inferStatus(http, key)).toBe(403);
  });

  it("let nobody in while their file cannot be read, and everybody again when it can", async () => {
    const key = (await keysCommand("create", where, "--key-name=ci")).out;
    await eventually(async () => expect(await inferStatus(http, key)).toBe(200));
    copyFileSync(file, `${file}.good`);
    writeFileSync(file, "{");
    await eventually(async () => expect(await inferStatus(http, key)).toBe(503));
    expect(server.lines.map(({ msg }) => msg)).toContain(`API keys in ${file} cannot be read`);
    renameSync(`${file}.good`, file);
    await eventually(async () => expect(await inferStatus(http, key)).toBe(200));
  }, 30_000);
});

describe("keys of two gateways", () => {
  let deployment: Deployment;
  let where: readonly string[];
  beforeAll(async () => {
    deployment = await deploy({
      models: models.path,
      gateways: 2,
      flags: ["--api-keys=redis"],
      redis: { appendOnly: true },
    });
    where = ["--api-keys=redis", `--redis-url=${deployment.redis.url}`];
  }, 120_000);
  afterAll(() => deployment.stop());

  it("count at both, and no longer at either once revoked", async () => {
    const key = (await keysCommand("create", ...where, "--key-name=ci")).out;
    const all = deployment.gateways.map(({ http }) => http);
    for (const http of all)
      await eventually(async () => expect(await inferStatus(http, key)).toBe(200));
    await keysCommand("revoke", key.slice(3, 15), ...where);
    const revokedAt = performance.now();
    await Promise.all(all.map((http) => expectRefused(http, key, revokedAt)));
  }, 60_000);

  it("let nobody in while Redis is away, and everybody when it is back", async () => {
    const key = (await keysCommand("create", ...where, "--key-name=ci")).out;
    const { http } = deployment;
    const statusOf = async (): Promise<number> =>
      (await http.ask("GET", "/v2", Buffer.alloc(0), { "X-API-Key": key })).status;
    await eventually(async () => expect(await statusOf()).toBe(200));
    await deployment.redis.kill();
    await eventually(async () => expect(await statusOf()).toBe(503));
    expect((await http.get("/v2/health/live")).status).toBe(200);
    await deployment.redis.restart();
    await eventually(async () => expect(await statusOf()).toBe(200), 20_000);
  }, 60_000);
});

describe("tokens of serve", () => {
  let issuer: TokenIssuer;
  let running: Serving;
  beforeAll(async () => {
    issuer = await startIssuer();
    const own = new ModelDirectory();
    own.model("steady", { 1: addingModel(1) });
    running = await startServing(
      own,
      `--jwt-jwks-url=${issuer.url.href}`,
      `--jwt-issuer=${issuerName}`,
      `--jwt-audience=${audienceName}`,
    );
  }, 60_000);
  afterAll(async () => {
    await stopServing(running);
    issuer.close();
  });

  async function bearerStatus(token: string): Promise<number> {
    const headers = { Authorization: `Bearer ${token}` };
    return (await running.http.infer("steady", addingBody, headers)).status;
  }

  it("are taken by both transports, for what their claims allow", async () => {
    expect(await bearerStatus(await issuer.sign())).toBe(200);
    expect(await bearerStatus(await issuer.sign({ scope: "read" }))).toBe(403);
    expect(await bearerStatus(await issuer.sign({ models: "other*" }))).toBe(403);
    expect(await bearerStatus(await issuer.sign({ aud: "other" }))).toBe(401);
    const token = await issuer.sign();
    expect(await grpcStatus(running.grpc, "authorization", `Bearer ${token}`)).toBe(status.OK);
    expect(await grpcStatus(running.grpc, "x-api-key", token)).toBe(status.UNAUTHENTICATED);
  });

  it("are taken after the issuer has rotated its keys", async () => {
    await issuer.rotate(false);
    const token = await issuer.sign();
    await eventually(async () => expect(await bearerStatus(token)).toBe(200));
  });
});
