import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { HttpClient } from "../helpers/http-client.ts";
import { identityModel } from "../helpers/onnx-model.ts";
import { s3Environment, startS3, type S3Server } from "../helpers/s3-server.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";

const config = `backend: "onnxruntime"
instance_group [ { count: 2 kind: KIND_CPU } ]
model_warmup [ { name: "from a file" batch_size: 1 count: 2
  inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 2 ] input_data_file: "data/two" } } } ]`;

describe("warmup behind a queue", { timeout: 60_000 }, () => {
  let s3: S3Server;
  let server: TidepoolProcess;
  let http: HttpClient;
  beforeAll(async () => {
    Object.assign(process.env, s3Environment);
    s3 = await startS3();
    const model = identityModel([{ name: "x", datatype: "FP32", shape: [2] }, "y"]);
    for (const name of ["warm", "cold"]) {
      await s3.putModel(name, { 1: model });
      await s3.put(`${name}/config.pbtxt`, config);
    }
    await s3.put("warm/warmup/data/two", new Uint8Array(8));
    const flags = [
      `--model-repository=s3://${new URL(s3.endpoint).host}/${s3.bucket}`,
      "--model-control-mode=explicit",
      "--load-model=warm",
    ];
    server = await startTidepool(flags, "dev");
    http = new HttpClient(server.http);
  }, 60_000);
  afterAll(async () => {
    http.close();
    await server.stop();
    await s3.stop();
  });

  it("takes its files from S3 and is counted at the gateway", async () => {
    await eventually(async () => {
      const { text } = await http.get("/v2/models/warm/stats");
      expect(JSON.parse(text).model_stats).toMatchObject([
        { inference_count: 4, execution_count: 4 },
      ]);
    });
  });

  it("fails the load where its file is missing", async () => {
    const answer = await http.post("/v2/repository/models/cold/load");
    expect(answer).toMatchObject({ status: 400 });
    expect(JSON.parse(answer.text).error).toContain(
      "warmup setting of input 'x': file 'data/two' does not exist in the model's folder 'warmup'",
    );
  });
});
