import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { eventually } from "../helpers/eventually.ts";
import { HttpClient } from "../helpers/http-client.ts";
import { S3Proxy } from "../helpers/s3-proxy.ts";
import { s3Environment, startS3, type S3Server } from "../helpers/s3-server.ts";
import { scrape } from "../helpers/scrape.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";

/** Every test lets the pool fall to zero and rise again. */
const patience = { timeout: 60_000 };

describe("models in S3 behind a queue", patience, () => {
  let s3: S3Server;
  let proxy: S3Proxy;
  let server: TidepoolProcess;
  let http: HttpClient;
  beforeAll(async () => {
    Object.assign(process.env, s3Environment);
    s3 = await startS3();
    proxy = await S3Proxy.start(s3.endpoint);
    await s3.putModel("a", { 1: addingModel(1) });
    server = await startTidepool(
      [
        `--model-repository=s3://${s3.bucket}`,
        `--s3-endpoint=${proxy.endpoint}`,
        "--model-control-mode=poll",
        "--repository-poll-secs=1",
        "--pool-idle-seconds=0",
        "--autoscaler-interval-ms=50",
      ],
      "dev",
    );
    http = new HttpClient(server.http);
  });
  afterEach(() => {
    proxy.fault = () => undefined;
  });
  afterAll(async () => {
    http.close();
    await server.stop();
    await proxy.stop();
    await s3.stop();
  });

  async function ask(): Promise<number | string> {
    const answer = await http.infer("a", addingBody);
    return answer.status === 200 ? JSON.parse(answer.text).outputs[0].data[0] : answer.text;
  }

  /** Why its newest files do not serve. */
  async function reason(): Promise<string | undefined> {
    const index: { version?: string; reason?: string }[] = JSON.parse(
      (await http.post("/v2/repository/index")).text,
    );
    return index.find(({ version }) => version === "2")?.reason;
  }

  const ebb = (): Promise<void> =>
    eventually(async () => {
      const series = await scrape(server.metrics);
      for (const state of ["starting", "ready", "draining"])
        expect(series.get(`tidepool_pool_workers{pool="default",state="${state}"}`)).toBe(0);
    }, 20_000);

  it("answer from zero pool workers", async () => {
    await ebb();
    expect(await ask()).toBe(1);
  });

  it("go live in another version once a pool worker has opened it", async () => {
    await ebb();
    await s3.putModel("a", { 2: addingModel(2) });
    await eventually(async () => expect(await ask()).toBe(2), 20_000);
    await ebb();
    expect(await ask()).toBe(2);
  });

  it("answer from zero pool workers while S3 does not, from the files that are here", async () => {
    await ebb();
    proxy.fault = () => ({ kind: "status", status: 403, code: "AccessDenied" });
    expect(await ask()).toBe(2);
  });

  it("are never replaced by a bad file, even in the same place and after the pool was empty", async () => {
    await s3.put("a/2/model.onnx", "this is no model");
    await eventually(async () => expect(await reason()).toBeDefined(), 20_000);
    expect(await ask()).toBe(2);
    await ebb();
    expect(await ask()).toBe(2);
    await s3.put("a/2/model.onnx", addingModel(3));
    await eventually(async () => expect(await ask()).toBe(3), 20_000);
    expect(await reason()).toBeUndefined();
  });
});
