import { randomUUID } from "node:crypto";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, type TestContext } from "vitest";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { deploy, type Deployment } from "../helpers/deployment.ts";
import { eventually } from "../helpers/eventually.ts";
import type { HttpClient } from "../helpers/http-client.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { runPush, startPush } from "../helpers/push-command.ts";
import { S3Proxy } from "../helpers/s3-proxy.ts";
import { s3Environment, startS3, type S3Server } from "../helpers/s3-server.ts";
import { startTidepool } from "../helpers/tidepool-process.ts";
import { type RunningServe, startServe } from "./push-serve.ts";

let s3: S3Server;
let proxy: S3Proxy;
beforeAll(async () => {
  Object.assign(process.env, s3Environment);
  s3 = await startS3();
  proxy = await S3Proxy.start(s3.endpoint);
});
afterAll(async () => {
  await proxy.stop();
  await s3.stop();
});

/** A repository in S3 of a test's own, because they run at the same time, and a folder to push from. */
interface Place {
  readonly prefix: string;
  readonly repository: string;
  readonly local: ModelDirectory;
  /** A version of the model to be pushed, with other files beside it. */
  readonly version: (
    number: number,
    more?: Readonly<Record<string, Uint8Array | string>>,
  ) => string;
}

async function newPlace({ onTestFinished }: TestContext): Promise<Place> {
  const prefix = randomUUID();
  const local = new ModelDirectory();
  onTestFinished(() => local.remove());
  await s3.putModel(`${prefix}/m`, { 1: addingModel(1) });
  return {
    prefix,
    repository: `s3://${proxy.endpoint.replace("http://", "")}/${s3.bucket}/${prefix}`,
    local,
    version: (number, more = {}) => {
      local.write("m/1/model.onnx", addingModel(number));
      for (const [name, content] of Object.entries(more)) local.write(`m/${name}`, content);
      return path.join(local.path, "m");
    },
  };
}

async function serving(test: TestContext): Promise<Place & { readonly running: RunningServe }> {
  const place = await newPlace(test);
  const poll = ["--model-control-mode=poll", "--repository-poll-secs=1"];
  const running = await startServe(place.repository, poll);
  test.onTestFinished(() => running.stop());
  return { ...place, running };
}

async function deployed(
  test: TestContext,
  mode: string,
  more: readonly string[] = [],
): Promise<Place & { readonly deployment: Deployment }> {
  const place = await newPlace(test);
  const deployment = await deploy({
    models: place.repository,
    gateways: 2,
    flags: [`--model-control-mode=${mode}`, ...more],
    gatewayFlags: () => ["--allow-uploads"],
  });
  test.onTestFinished(() => deployment.stop());
  return { ...place, deployment };
}

async function answer(http: HttpClient): Promise<number> {
  return JSON.parse((await http.infer("m", addingBody)).text).outputs[0].data[0];
}

async function stored(http: HttpClient): Promise<string> {
  return (await http.post("/v2/repository/index")).text;
}

describe.concurrent("tidepool push to S3, by one process", { timeout: 60_000 }, () => {
  it("serves what was pushed, of small files and of files in parts", async (test) => {
    const { running, version } = await serving(test);
    const more = { "1/large.bin": Buffer.alloc(20 * 2 ** 20, "large"), "labels.txt": "a\n" };
    const pushed = await runPush(running.address, [version(2, more)]);
    expect(pushed).toMatchObject({
      code: 0,
      stdout: "model 'm', version 2: in the repository, and answers now\nversions that answer: 2\n",
    });
    expect(await answer(running.http)).toBe(2);
  });

  it("goes on where it was interrupted", async (test) => {
    const { running, prefix, version } = await serving(test);
    const folder = version(2, { "1/large.bin": Buffer.alloc(60 * 2 ** 20, "large") });
    let parts = 0;
    proxy.fault = ({ method, url }) => {
      if (method !== "PUT" || !url.includes(prefix) || !url.includes("partNumber="))
        return undefined;
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

  it("leaves everything as it was when the version cannot be opened", async (test) => {
    const { running, local } = await serving(test);
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

describe.concurrent("tidepool push to S3, by gateways and a pool", { timeout: 120_000 }, () => {
  it.for([
    ["poll", ["--repository-poll-secs=1"]],
    ["explicit", []],
    ["none", []],
  ] as const)(
    "a pool worker opens it, and all gateways serve it, in mode %s",
    async ([mode, more], test) => {
      const { version, deployment } = await deployed(test, mode, more);
      const { http, gateways } = deployment;
      if (mode === "explicit") await http.post("/v2/repository/models/m/load");
      expect(await answer(http)).toBe(1);
      const folder = version(2, { "config.pbtxt": 'backend: "onnxruntime"\nmax_batch_size: 0\n' });
      const pushed = await runPush(http.origin.replace("http://", ""), [folder]);
      expect(pushed).toMatchObject({ code: 0, stdout: expect.stringContaining("answer: 2\n") });
      for (const gateway of gateways)
        await eventually(async () => expect(await answer(gateway.http)).toBe(2));
    },
  );

  it("a version that cannot be opened changes nothing", async (test) => {
    const { local, deployment } = await deployed(test, "poll", ["--repository-poll-secs=1"]);
    const { http } = deployment;
    local.write("m/1/model.onnx", "no model");
    const refused = await runPush(http.origin.replace("http://", ""), [path.join(local.path, "m")]);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringMatching(/cannot be served, and is not kept: .*Protobuf/u),
    ]);
    expect(await answer(http)).toBe(1);
  });
});

describe.concurrent("tidepool push while no pool worker runs", { timeout: 120_000 }, () => {
  it("wakes one to open the version", async (test) => {
    const { repository, version } = await newPlace(test);
    const server = await startTidepool(
      [
        `--model-repository=${repository}`,
        "--allow-uploads",
        "--pool-idle-seconds=0",
        "--autoscaler-interval-ms=50",
      ],
      "dev",
    );
    test.onTestFinished(async () => void (await server.stop()));
    const pushed = await runPush(server.http, [version(2)]);
    expect(pushed).toMatchObject({ code: 0, stdout: expect.stringContaining("answer: 2\n") });
  });
});
