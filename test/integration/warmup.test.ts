import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { identityModel } from "../helpers/onnx-model.ts";
import { type S3Dev, startS3Dev } from "../helpers/s3-dev.ts";

const config = `backend: "onnxruntime"
instance_group [ { count: 2 kind: KIND_CPU } ]
model_warmup [ { name: "from a file" batch_size: 1 count: 2
  inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 2 ] input_data_file: "data/two" } } } ]`;

describe("warmup behind a queue", { timeout: 60_000 }, () => {
  let running: S3Dev;
  beforeAll(async () => {
    const model = identityModel([{ name: "x", datatype: "FP32", shape: [2] }, "y"]);
    const flags = ["--model-control-mode=explicit", "--load-model=warm"];
    running = await startS3Dev(
      async (s3) => {
        for (const name of ["warm", "cold"]) {
          await s3.putModel(name, { 1: model });
          await s3.put(`${name}/config.pbtxt`, config);
        }
        await s3.put("warm/warmup/data/two", new Uint8Array(8));
      },
      ...flags,
    );
  }, 60_000);
  afterAll(() => running.stop());

  it("takes its files from S3 and is counted at the gateway", async () => {
    await eventually(async () => {
      const { text } = await running.http.get("/v2/models/warm/stats");
      expect(JSON.parse(text).model_stats).toMatchObject([
        { inference_count: 4, execution_count: 4 },
      ]);
    });
  });

  it("fails the load where its file is missing", async () => {
    const answer = await running.http.post("/v2/repository/models/cold/load");
    expect(answer).toMatchObject({ status: 400 });
    expect(JSON.parse(answer.text).error).toContain(
      "warmup setting of input 'x': file 'data/two' does not exist in the model's folder 'warmup'",
    );
  });
});
