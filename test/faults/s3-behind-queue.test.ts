import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { type Deployment, deploy } from "../helpers/deployment.ts";
import { errorOf } from "../helpers/http-client.ts";
import { type S3Fault, S3Proxy } from "../helpers/s3-proxy.ts";
import { s3Environment, type S3Server, startS3 } from "../helpers/s3-server.ts";

describe("models in S3, loaded by a pool worker", { timeout: 60_000 }, () => {
  let s3: S3Server;
  let proxy: S3Proxy;
  let deployment: Deployment;
  beforeAll(async () => {
    Object.assign(process.env, s3Environment);
    s3 = await startS3();
    proxy = await S3Proxy.start(s3.endpoint);
    deployment = await deploy({
      models: `s3://${new URL(proxy.endpoint).host}/${s3.bucket}`,
      flags: ["--model-control-mode=explicit"],
    });
  }, 60_000);
  afterEach(() => {
    proxy.fault = () => undefined;
  });
  afterAll(async () => {
    await deployment.stop();
    await proxy.stop();
    await s3.stop();
  });

  /** Happens to the first so many requests for a model's content. */
  function spoil(times: number, fault: S3Fault): void {
    let left = times;
    proxy.fault = ({ method, url }) =>
      method === "GET" && url.includes("model.onnx") && left-- > 0 ? fault : undefined;
  }

  async function answerOf(name: string): Promise<unknown> {
    const { text } = await deployment.http.infer(name, addingBody);
    return JSON.parse(text).outputs[0].data[0];
  }

  it.each<[name: string, S3Fault]>([
    ["fails", { kind: "status", status: 503, code: "SlowDown" }],
    ["breaks off", { kind: "reset", afterBytes: 50 }],
    ["cuts short", { kind: "truncate", afterBytes: 50 }],
    ["corrupts", { kind: "corrupt", atByte: 50 }],
  ])("are served where S3 %s at first", async (kind, fault) => {
    const name = kind.replace(" ", "_");
    await s3.putModel(name, { 1: addingModel(3) });
    spoil(2, fault);
    const loaded = await deployment.http.post(`/v2/repository/models/${name}/load`);
    expect([loaded.status, loaded.text]).toEqual([200, ""]);
    expect(await answerOf(name)).toBe(3);
  });

  it("stay the old ones, and say why, where a file changes while it is fetched", async () => {
    const load = "/v2/repository/models/changing/load";
    await s3.putModel("changing", { 1: addingModel(1) });
    expect((await deployment.http.post(load)).status).toBe(200);
    await s3.putModel("changing", { 1: addingModel(2) });
    spoil(1, { kind: "after", work: () => s3.putModel("changing", { 1: addingModel(4) }) });
    expect(errorOf(await deployment.http.post(load))).toContain("changed");
    expect(await answerOf("changing")).toBe(1);
    expect((await deployment.http.post(load)).status).toBe(200);
    expect(await answerOf("changing")).toBe(4);
  });
});
