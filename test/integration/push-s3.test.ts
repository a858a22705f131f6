import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { deploy, type Deployment } from "../helpers/deployment.ts";
import { eventually } from "../helpers/eventually.ts";
import type { HttpClient } from "../helpers/http-client.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { runPush, startPush } from "../helpers/push-command.ts";
import { S3Proxy } from "../helpers/s3-proxy.ts";
import { s3Environment, startS3, type S3Server } from "../helpers/s3-server.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";
import { type RunningServe, startServe } from "./push-serve.ts";

let s3: S3Server;
let proxy: S3Proxy;
let local: ModelDirectory;
beforeAll(async () => {
  Object.assign(process.env, s3Environment);
  s3 = await startS3();
  proxy = await S3Proxy.start(s3.endpoint);
});
beforeEach(async () => {
  local = new ModelDirectory();
  await s3.putModel("m", { 1: addingModel(1) });
});
afterEach(async () => {
  local.remove();
  proxy.fault = () => undefined;
  await s3.remove("");
});
afterAll(async () => {
  await proxy.stop();
  await s3.stop();
});

const repository = (): string => `s3://${proxy.endpoint.replace("http://", "")}/${s3.bucket}`;

/** A version of the model to be pushed, with other files beside it. */
function version(number: number, more: Readonly<Record<string, Uint8Array | string>> = {}): string {
  local.remove("m");
  local.write("m/1/model.onnx", addingModel(number));
  for (const [name, content] of Object.entries(more)) local.write(`m/${name}`, content);
  return path.join(local.path, "m");
}

async function answer(http: HttpClient): Promise<number> {
  return JSON.parse((await http.infer("m", addingBody)).text).outputs[0].data[0];
}

async function stored(http: HttpClient): Promise<string> {
  return (await http.post("/v2/repository/index")).text;
}

describe("tidepool push to S3, by one process", { timeout: 60_000 }, () => {
  let running: RunningServe;
  beforeEach(async () => {
    running = await startServe(repository(), [
      "--model-control-mode=poll",
      "--repository-poll-secs=1",
    ]);
  });
  afterEach(() => running.stop());

  it("serves what was pushed, of small files and of files in parts", async () => {
    const more = { "1/large.bin": Buffer.alloc(20 * 2 ** 20, "large"), "labels.txt": "a\n" };
    const pushed = await runPush(running.address, [version(2, more)]);
    expect(pushed).toMatchObject({
      code: 0,
      stdout: "model 'm', version 2: in the repository, and answers now\nversions that answer: 2\n",
    });
    expect(await answer(running.http)).toBe(2);
  });

  it("goes on where it was interrupted", async () => {
    const folder = version(2, { "1/large.bin": Buffer.alloc(60 * 2 ** 20, "large") });
    let parts = 0;
    proxy.fault = ({ method, url }) => {
      if (method !== "PUT" || !url.includes("partNumber=")) return undefined;
      parts += 1;
      return parts > 3 ? { kind: "stall", afterBytes: 0 } : undefined;
    };
    const push = startPush(running.address, [folder]);
    await eventually(() => expect(parts).toBeGreaterThan(4), 30_000);
    push.process.kill("SIGKILL");
    await push.ended;
    proxy.fault = () => undefined;
    expect(await answer(running.http)).toBe(1);
    const { code, stderr } = await runPush(running.address, [folder]);
    expect([code, stderr]).toEqual([0, expect.stringContaining("going on: ")]);
    expect(await answer(running.http)).toBe(2);
  });

  it("leaves everything as it was when the version cannot be opened", async () => {
    const before = await stored(running.http);
    local.write("m/1/model.onnx", "no model");
    const refused = await runPush(running.address, [path.join(local.path, "m")]);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringMatching(/cannot be served, and is not kept: .*Protobuf/u),
    ]);
    expect(await stored(running.http)).toBe(before);
    expect(await answer(running.http)).toBe(1);
  });
});

describe("tidepool push to S3, by gateways and a pool", { timeout: 120_000 }, () => {
  let deployment: Deployment | undefined;
  afterEach(async () => {
    await deployment?.stop();
    deployment = undefined;
  });

  async function start(mode: string, more: readonly string[] = []): Promise<Deployment> {
    deployment = await deploy({
      models: repository(),
      gateways: 2,
      flags: [`--model-control-mode=${mode}`, ...more],
      gatewayFlags: () => ["--allow-uploads"],
    });
    return deployment;
  }

  it.each([
    ["poll", ["--repository-poll-secs=1"]],
    ["explicit", []],
    ["none", []],
  ] as const)(
    "a pool worker opens it, and all gateways serve it, in mode %s",
    async (mode, more) => {
      const { http, gateways } = await start(mode, more);
      if (mode === "explicit") await http.post("/v2/repository/models/m/load");
      expect(await answer(http)).toBe(1);
      const folder = version(2, { "config.pbtxt": 'backend: "onnxruntime"\nmax_batch_size: 0\n' });
      const pushed = await runPush(http.origin.replace("http://", ""), [folder]);
      expect(pushed).toMatchObject({ code: 0, stdout: expect.stringContaining("answer: 2\n") });
      for (const gateway of gateways)
        await eventually(async () => expect(await answer(gateway.http)).toBe(2));
    },
  );

  it("a version that cannot be opened changes nothing", async () => {
    const { http } = await start("poll", ["--repository-poll-secs=1"]);
    local.write("m/1/model.onnx", "no model");
    const refused = await runPush(http.origin.replace("http://", ""), [path.join(local.path, "m")]);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringMatching(/cannot be served, and is not kept: .*Protobuf/u),
    ]);
    expect(await answer(http)).toBe(1);
  });
});

describe("tidepool push while no pool worker runs", { timeout: 120_000 }, () => {
  let server: TidepoolProcess | undefined;
  afterEach(() => server?.stop());

  it("wakes one to open the version", async () => {
    server = await startTidepool(
      [
        `--model-repository=${repository()}`,
        "--allow-uploads",
        "--pool-idle-seconds=0",
        "--autoscaler-interval-ms=50",
      ],
      "dev",
    );
    const pushed = await runPush(server.http, [version(2)]);
    expect(pushed).toMatchObject({ code: 0, stdout: expect.stringContaining("answer: 2\n") });
  });
});
