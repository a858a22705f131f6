import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { eventually } from "../helpers/eventually.ts";
import { HttpClient } from "../helpers/http-client.ts";
import { S3Proxy } from "../helpers/s3-proxy.ts";
import { s3Environment, startS3, type S3Server } from "../helpers/s3-server.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";

let s3: S3Server;
let proxy: S3Proxy;
beforeAll(async () => {
  Object.assign(process.env, s3Environment);
  s3 = await startS3();
  proxy = await S3Proxy.start(s3.endpoint);
});
afterEach(() => {
  proxy.fault = () => undefined;
});
afterAll(async () => {
  await proxy.stop();
  await s3.stop();
});

/** A server over a prefix of the bucket, and what tests ask of it. */
class Running {
  readonly server: TidepoolProcess;
  readonly http: HttpClient;

  private constructor(server: TidepoolProcess) {
    this.server = server;
    this.http = new HttpClient(server.http);
  }

  static async start(prefix: string, ...flags: string[]): Promise<Running> {
    const place = proxy.endpoint.replace("http://", "");
    const repository = `--model-repository=s3://${place}/${s3.bucket}/${prefix}`;
    return new Running(await startTidepool([repository, ...flags]));
  }

  async ask(name: string): Promise<number | string> {
    const answer = await this.http.infer(name, addingBody);
    return answer.status === 200 ? JSON.parse(answer.text).outputs[0].data[0] : answer.text;
  }

  /** Why versions of a model do not serve. */
  async reasonsOf(name: string): Promise<string> {
    const index = JSON.parse((await this.http.post("/v2/repository/index")).text);
    const lines = index.filter((line: { name: string }) => line.name === name);
    return lines.map((line: { reason?: string }) => line.reason ?? "").join(" ");
  }

  async stop(): Promise<void> {
    this.http.close();
    await this.server.stop();
  }
}

describe("models in S3 with --model-control-mode=poll", () => {
  let running: Running;
  beforeAll(async () => {
    await s3.putModel("polled/old", { 1: addingModel(1) });
    running = await Running.start(
      "polled",
      "--model-control-mode=poll",
      "--repository-poll-secs=1",
    );
  });
  afterAll(() => running.stop());

  it("serves what is uploaded, changed and deleted", async () => {
    expect(await running.ask("old")).toBe(1);
    await s3.putModel("polled/new", { 1: addingModel(10) });
    await eventually(async () => expect(await running.ask("new")).toBe(10));
    await s3.putModel("polled/new", { 2: addingModel(20) });
    await eventually(async () => expect(await running.ask("new")).toBe(20));
    await s3.remove("polled/new/");
    await eventually(async () => expect(await running.ask("new")).toContain("unknown model"));
  });

  it("goes on with the old version while the new one is bad, and says why", async () => {
    await s3.put("polled/old/2/model.onnx", "this is no model");
    await eventually(async () => expect(await running.reasonsOf("old")).toContain("old"));
    expect(await running.ask("old")).toBe(1);
    await s3.put("polled/old/2/model.onnx", addingModel(2));
    await eventually(async () => expect(await running.ask("old")).toBe(2));
  });

  it("leaves everything as it is while S3 cannot be listed", async () => {
    await s3.putModel("polled/steady", { 1: addingModel(7) });
    await eventually(async () => expect(await running.ask("steady")).toBe(7));
    proxy.fault = () => ({ kind: "status", status: 403, code: "AccessDenied" });
    await eventually(() => {
      const failed = running.server.lines.filter(
        ({ msg }) => msg === "model repository cannot be read",
      );
      expect(failed.length).toBeGreaterThan(1);
    });
    expect(await running.ask("steady")).toBe(7);
    expect((await running.http.get("/v2/health/ready")).status).toBe(200);
    proxy.fault = () => undefined;
    await s3.putModel("polled/steady", { 1: addingModel(8) });
    await eventually(async () => expect(await running.ask("steady")).toBe(8));
  });

  it("leaves a model as it is while it alone cannot be listed", async () => {
    await s3.putModel("polled/alone", { 1: addingModel(3) });
    await eventually(async () => expect(await running.ask("alone")).toBe(3));
    proxy.fault = ({ url }) =>
      url.includes("polled/alone/")
        ? { kind: "status", status: 403, code: "AccessDenied" }
        : undefined;
    await eventually(async () =>
      expect(await running.reasonsOf("alone")).toContain("cannot be read from S3 (AccessDenied)"),
    );
    expect(await running.ask("alone")).toBe(3);
    proxy.fault = () => undefined;
    await eventually(async () => expect(await running.reasonsOf("alone")).not.toContain("S3"));
  });
});

describe("models in S3 with --model-control-mode=explicit", () => {
  let running: Running;
  beforeAll(async () => {
    await s3.putModel("asked/a", { 1: addingModel(1) });
    running = await Running.start("asked", "--model-control-mode=explicit");
  });
  afterAll(() => running.stop());

  it("are loaded and unloaded on request, from what is there at that time", async () => {
    const control = async (action: string): Promise<string> =>
      (await running.http.post(`/v2/repository/models/a/${action}`)).text;
    expect(await running.ask("a")).toContain("unknown model");
    expect(await control("load")).toBe("");
    expect(await running.ask("a")).toBe(1);
    await s3.put("asked/a/1/model.onnx", "this is no model");
    expect(await control("load")).toContain("load failed for model 'a'");
    expect(await running.ask("a")).toBe(1);
    await s3.put("asked/a/1/model.onnx", addingModel(2));
    expect(await control("load")).toBe("");
    expect(await running.ask("a")).toBe(2);
    expect(await control("unload")).toBe("");
    expect(await running.ask("a")).toContain("no available versions");
  });
});
