import { status } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { writeEchoModels } from "../faults/echo-models.ts";
import { binaryInfer, errorOf } from "../helpers/http-client.ts";
import { scrape } from "../helpers/scrape.ts";
import { serving } from "../helpers/serving.ts";

const items = 20;
const values = Float32Array.from({ length: 4 * items }, (_, i) => i);
const bytes = Buffer.from(values.buffer);
const input = { name: "x", datatype: "FP32", shape: [items, 4] };
const body = { inputs: [{ ...input, data: [...values] }] };
const message = { modelName: "batch", inputs: [input], rawInputContents: [bytes] };

describe("--split-oversized-batches", () => {
  const splitting = serving(writeEchoModels, "--split-oversized-batches");

  it("runs a batch over max_batch_size in parts and answers it in one piece, over HTTP", async () => {
    const answer = JSON.parse((await splitting.http.infer("batch", body)).text);
    expect(answer.outputs).toEqual([
      { name: "y", datatype: "FP32", shape: [items, 4], data: [...values] },
    ]);
    const head = {
      inputs: [{ ...input, parameters: { binary_data_size: bytes.length } }],
      outputs: [{ name: "y", parameters: { binary_data: true } }],
    };
    const binary = await splitting.http.infer("batch", ...binaryInfer(head, bytes));
    expect(binary.bytes.subarray(-bytes.length)).toEqual(bytes);
  });

  it("does so over gRPC", async () => {
    const answer = await splitting.grpc.infer(message);
    expect(answer["outputs"]).toMatchObject([{ name: "y", shape: [items, 4] }]);
    expect(answer["rawOutputContents"]).toEqual([bytes]);
  });

  it("counts the parts", async () => {
    const count = async (name: string): Promise<number> =>
      (await scrape(splitting.server.metrics)).get(`${name}{model="batch",version="1"}`) ?? NaN;
    const [executions, inferences] = [
      await count("nv_inference_exec_count"),
      await count("nv_inference_count"),
    ];
    await splitting.http.infer("batch", body);
    expect((await count("nv_inference_exec_count")) - executions).toBe(3);
    expect((await count("nv_inference_count")) - inferences).toBe(items);
  });

  it("refuses what would become more parts than anybody wants to wait for", async () => {
    const data = Buffer.alloc(16 * 2 ** 20);
    const parameters = { binary_data_size: data.length };
    const head = { inputs: [{ ...input, shape: [2 ** 20, 4], parameters }] };
    const answer = await splitting.http.infer("batch", ...binaryInfer(head, data));
    expect(answer.status).toBe(400);
    expect(errorOf(answer)).toContain("131072 parts, expected at most 4096");
  });
});

describe("without --split-oversized-batches", () => {
  const refusing = serving(writeEchoModels);

  it("a batch over max_batch_size is refused, over HTTP and gRPC", async () => {
    const text = "inference request batch-size must be <= 8 for 'batch'";
    const answer = await refusing.http.infer("batch", body);
    expect(answer.status).toBe(400);
    expect(errorOf(answer)).toContain(text);
    await expect(refusing.grpc.infer(message)).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: expect.stringContaining(text),
    });
  });
});
