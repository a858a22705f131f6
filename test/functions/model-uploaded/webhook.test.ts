import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addingBody, addingModel } from "../../helpers/adding-model.ts";
import { endProcess } from "../../helpers/end-process.ts";
import { eventually } from "../../helpers/eventually.ts";
import { freePort } from "../../helpers/free-port.ts";
import { HttpClient } from "../../helpers/http-client.ts";
import { s3Environment, startS3, type S3Server } from "../../helpers/s3-server.ts";
import { startTidepool, type TidepoolProcess } from "../../helpers/tidepool-process.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const secret = "a-secret-of-this-test";

async function answer(http: HttpClient): Promise<number> {
  return JSON.parse((await http.infer("m", addingBody)).text).outputs[0].data[0];
}

describe("the webhook of a real S3 server", () => {
  let s3: S3Server;
  let server: TidepoolProcess;
  let webhook: ChildProcess;
  let http: HttpClient;
  const lines: string[] = [];
  beforeAll(async () => {
    Object.assign(process.env, s3Environment);
    const port = await freePort();
    const url = `http://s3:${secret}@127.0.0.1:${port}/events`;
    const environment: NodeJS.ProcessEnv = {
      ...process.env,
      MODEL_UPLOADED_SECRET: secret,
      MODELS: "s3://models/prod",
      PORT: String(port),
      QUIET_MILLISECONDS: "100",
    };
    const start = async (more: NodeJS.ProcessEnv): Promise<ChildProcess> => {
      const child = spawn(process.execPath, ["functions/model-uploaded/server.ts"], {
        cwd: root,
        env: { ...environment, ...more },
        stdio: ["ignore", "pipe", "inherit"],
      });
      createInterface(child.stdout).on("line", (line) => lines.push(line));
      await eventually(() => expect(lines.join("\n")).toContain("takes events"));
      return child;
    };
    const gateway = await freePort();
    webhook = await start({ TIDEPOOL_URL: `http://127.0.0.1:${gateway}` });
    // It asks the webhook once before it serves.
    s3 = await startS3("models", ["--event-webhook-url", url]);
    await s3.putModel("prod/m", { 1: addingModel(1) });
    server = await startTidepool([
      `--model-repository=s3://${s3.endpoint.replace("http://", "")}/models/prod`,
      `--http-port=${gateway}`,
    ]);
    http = new HttpClient(server.http);
  });
  afterAll(async () => {
    http?.close();
    await server?.stop();
    await endProcess(webhook);
    await s3?.stop();
  });

  it("has the gateway serve a version when its files have come", async () => {
    expect(await answer(http)).toBe(1);
    await s3.put("prod/m/2/model.onnx", addingModel(2));
    await eventually(async () => expect(await answer(http)).toBe(2), 15_000);
    const told = '"msg":"model activated","model":"m","versions":["2"]';
    await eventually(() => expect(lines.join("\n")).toContain(told));
  });
});
