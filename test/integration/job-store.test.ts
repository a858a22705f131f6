import { readdirSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../redis/connection.ts";
import { type Deployment, deploy } from "../helpers/deployment.ts";
import { eventually } from "../helpers/eventually.ts";
import { type Answer, binaryInfer } from "../helpers/http-client.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { identityModel } from "../helpers/onnx-model.ts";
import { s3Environment, type S3Server, startS3 } from "../helpers/s3-server.ts";

const elements = 500_000;
const tensor = Buffer.from(Float32Array.from({ length: elements }, (_, i) => i).buffer);

describe("jobs with --job-store", { timeout: 60_000 }, () => {
  const models = new ModelDirectory();
  let s3: S3Server;
  let deployment: Deployment;
  beforeAll(async () => {
    Object.assign(process.env, s3Environment);
    models.model("list", {
      1: identityModel([{ name: "x", datatype: "FP32", shape: ["batch", "n"] }, "y"]),
    });
    s3 = await startS3();
    const place = `s3://${new URL(s3.endpoint).host}/${s3.bucket}/large`;
    deployment = await deploy({ models: models.path, flags: [`--job-store=${place}`] });
  }, 60_000);
  afterAll(async () => {
    await deployment.stop();
    await s3.stop();
    models.remove();
  });

  function submit(count: number): Promise<Answer> {
    const inputs = [
      {
        name: "x",
        datatype: "FP32",
        shape: [1, count],
        parameters: { binary_data_size: 4 * count },
      },
    ];
    const head = { inputs, parameters: { binary_data_output: true } };
    const [body, headers] = binaryInfer(head, tensor.subarray(0, 4 * count));
    return deployment.http.infer("list", body, { ...headers, Prefer: "respond-async" });
  }

  function untilDone(id: string): Promise<void> {
    return eventually(async () => {
      const { text } = await deployment.http.get(`/v2/jobs/${id}`);
      expect(JSON.parse(text).state).toBe("done");
    });
  }

  function kept(): readonly string[] {
    const found = readdirSync(path.join(s3.directory, s3.bucket), {
      recursive: true,
      encoding: "utf8",
    });
    return found.filter((name) => name.includes("j_"));
  }

  it("keeps large requests until they have run, and large results, in the bucket and not in Redis", async () => {
    const [poolWorker] = deployment.poolWorkers;
    await poolWorker?.stop();
    const answer = await submit(elements);
    expect(answer.status).toBe(202);
    const { id } = JSON.parse(answer.text);
    expect(kept()).toEqual([`large/tidepool/default/job-request/${id}`]);
    await poolWorker?.start();
    await untilDone(id);
    await eventually(() => expect(kept()).toEqual([`large/tidepool/default/job-result/${id}`]));
    const { bytes } = await deployment.http.get(`/v2/jobs/${id}/result`);
    expect(bytes.subarray(-tensor.byteLength).equals(tensor)).toBe(true);
    const commands = await connect(deployment.redis.url, "commands");
    expect(await commands.keys("*:job-re*")).toEqual([]);
    commands.disconnect();
  });

  it("keeps small ones in Redis, and refuses large ones for a while when S3 is gone", async () => {
    const before = kept();
    await s3.stop();
    const { id } = JSON.parse((await submit(4)).text);
    await untilDone(id);
    expect(before).toHaveLength(1);
    const { status, text, headers } = await submit(elements);
    expect([status, headers["retry-after"]]).toEqual([503, "1"]);
    expect(JSON.parse(text).error).toContain("cannot be written to S3");
  });
});
