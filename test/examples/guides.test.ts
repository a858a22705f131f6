import { execFile } from "node:child_process";
import { cpSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { python } from "../conformance/python.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { scrape } from "../helpers/scrape.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";
import { askTriton, protocols } from "./triton-client.ts";

const guides = path.resolve(import.meta.dirname, "../fixtures/guides");
const run = promisify(execFile);
const models = new ModelDirectory();
let server: TidepoolProcess;

/** Runs a command as a guide has it, but for the port, and gives the answer as JSON. */
async function curl(command: string): Promise<Readonly<Record<string, unknown>>> {
  const here = command
    .replace("localhost:8000", server.http)
    .replace("curl ", "curl -sS --fail-with-body ");
  const { stdout } = await run("bash", ["-c", here]);
  return stdout === "" ? {} : JSON.parse(stdout);
}

beforeAll(async () => {
  cpSync(guides, models.path, { recursive: true });
  await run(python, [path.join(guides, "make_models.py"), models.path]);
  server = await startTidepool([
    `--model-repository=${models.path}`,
    "--strict-model-config=false",
    "--log-verbose=1",
    "--model-control-mode=explicit",
    "--load-model=*",
  ]);
});

afterAll(async () => {
  await server.stop();
  models.remove();
});

describe.concurrent.each(protocols)(
  "models of guides for Triton, asked by tritonclient.%s",
  (protocol) => {
    const predict = async (version?: string): Promise<unknown> => {
      const features = { name: "features", datatype: "FP32", shape: [1, 50], data: [2] };
      const request = { inputs: [features], outputs: ["prediction"], ...(version && { version }) };
      return (await askTriton(server, protocol, "alpha_model", request))["prediction"];
    };

    it("alpha_model predicts by its newest version, and by an older one", async () => {
      expect(await predict()).toEqual({ shape: [1, 1], data: [100] });
      expect(await predict("1")).toEqual({ shape: [1, 1], data: [expect.closeTo(2)] });
    });

    it.for([
      [3, [1, 1]],
      [6, [3, 1]],
      [8, [4, 1]],
    ] as const)("text_classifier takes %i numbers and their mask", async ([length, counts]) => {
      const shape = [1, length];
      const { logits } = await askTriton(server, protocol, "text_classifier", {
        inputs: [
          {
            name: "input_ids",
            datatype: "INT64",
            shape,
            data: [101, 2054, 2003, 1996, 2034, 102],
          },
          { name: "attention_mask", datatype: "INT64", shape, data: [0, 1, 1] },
        ],
        outputs: ["logits"],
      });
      expect(logits).toEqual({ shape: [1, 2], data: counts });
    });

    it("text_classifier without its mask is refused, by the name of what is missing", async () => {
      const ids = { name: "input_ids", datatype: "INT64", shape: [1, 2], data: [101, 102] };
      const asked = askTriton(server, protocol, "text_classifier", {
        inputs: [ids],
        outputs: ["logits"],
      });
      await expect(asked).rejects.toThrow("attention_mask");
    });

    it("ensemble_pipeline goes through tokenizer, bert_model and postprocessor", async () => {
      const data = ["one two three", "eleven"];
      const { predictions } = await askTriton(server, protocol, "ensemble_pipeline", {
        inputs: [{ name: "raw_text", datatype: "BYTES", shape: [2, 1], data }],
        outputs: ["predictions"],
      });
      // How many words have 0, 1, … 9 letters: the second text is filled up to three.
      const lengths = [
        [0, 0, 0, 2, 0, 1, 0, 0, 0, 0],
        [2, 0, 0, 0, 0, 0, 1, 0, 0, 0],
      ];
      const expected = lengths.flatMap((counts) => {
        const sum = counts.reduce((total, count) => total + Math.exp(count), 0);
        return counts.map((count) => expect.closeTo(Math.exp(count) / sum, 5));
      });
      expect(predictions).toEqual({ shape: [2, 10], data: expected });
    });
  },
);

describe("commands of guides for Triton", () => {
  it("ask for health, metadata, config and statistics", async () => {
    expect(await curl("curl localhost:8000/v2/health/ready")).toEqual({});
    expect(await curl("curl localhost:8000/v2/health/live")).toEqual({});
    expect(await curl("curl localhost:8000/v2/models/text_classifier")).toMatchObject({
      versions: ["1", "2"],
      platform: "onnxruntime_onnx",
      inputs: [
        { name: "input_ids", datatype: "INT64", shape: [-1, -1] },
        { name: "attention_mask", datatype: "INT64", shape: [-1, -1] },
      ],
      outputs: [{ name: "logits", datatype: "FP32", shape: [-1, 2] }],
    });
    expect(await curl("curl localhost:8000/v2/models/ensemble_pipeline/config")).toMatchObject({
      platform: "ensemble",
      input: [{ name: "raw_text", data_type: "TYPE_STRING", dims: [1] }],
      ensemble_scheduling: { step: { length: 3 } },
    });
    expect(await curl("curl localhost:8000/v2/models/alpha_model/stats")).toMatchObject({
      model_stats: [{ name: "alpha_model", version: "1" }, { version: "2" }],
    });
  });

  it("unload and load a model", async () => {
    await curl("curl -X POST localhost:8000/v2/repository/models/alpha_model/unload");
    await expect(curl("curl localhost:8000/v2/models/alpha_model")).rejects.toThrow("404");
    await curl("curl -X POST localhost:8000/v2/repository/models/alpha_model/load");
    expect(await curl("curl localhost:8000/v2/models/alpha_model")).toMatchObject({
      name: "alpha_model",
    });
  });

  it("read metrics by the names that queries have", async () => {
    const names = new Set((await scrape(server.metrics)).keys());
    const labels = '{model="text_classifier",version="2"}';
    for (const name of [
      "inference_count",
      "inference_request_success",
      "inference_queue_duration_us",
    ])
      expect(names).toContain(`nv_${name}${labels}`);
  });
});
