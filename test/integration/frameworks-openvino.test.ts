import { cpSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import {
  bringMilliseconds,
  childrenOf,
  differenceFrom,
  type FrameworkModels,
  outputsOf,
  sendTogether,
  writeFrameworkModels,
} from "../helpers/framework-models.ts";
import { binaryInfer, errorOf, HttpClient } from "../helpers/http-client.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { type Serving, startServing, stopServing } from "../helpers/serving.ts";
import { startTidepool } from "../helpers/tidepool-process.ts";

const loaded = ["regressor", "single", "halves", "echo"];

let framework: FrameworkModels;
let serving: Serving;

beforeAll(async () => {
  const models = new ModelDirectory();
  framework = await writeFrameworkModels("openvino", models);
  models.write(
    "single/config.pbtxt",
    `max_batch_size: 4
     dynamic_batching { max_queue_delay_microseconds: 500000 preferred_batch_size: [ 4 ] }`,
  );
  models.write("wrong/1/model.xml", "<net");
  cpSync(path.join(models.path, "regressor"), path.join(models.path, "mistaken"), {
    recursive: true,
  });
  models.write(
    "mistaken/config.pbtxt",
    `max_batch_size: 4
     input [{ name: "x" data_type: TYPE_INT32 dims: [ 4 ] }]
     output [{ name: "y" data_type: TYPE_FP32 dims: [ 3 ] }]`,
  );
  serving = await startServing(
    models,
    `--python=${framework.python}`,
    "--model-control-mode=explicit",
    ...loaded.map((name) => `--load-model=${name}`),
  );
}, bringMilliseconds);

afterAll(() => stopServing(serving));

async function load(model: string): Promise<string> {
  return errorOf(await serving.http.post(`/v2/repository/models/${model}/load`));
}

describe("a model of OpenVINO", { timeout: 60_000 }, () => {
  it.for(["regressor", "single"])("answers as numpy does: %s", async (model) => {
    expect(await differenceFrom(framework.caseOf(model), serving.http, model)).toBeLessThan(1e-5);
  });

  it("completes its config by what the file says", async () => {
    const { text } = await serving.http.get("/v2/models/regressor/config");
    expect(JSON.parse(text)).toMatchObject({
      backend: "openvino",
      max_batch_size: 4,
      input: [{ name: "x", data_type: "TYPE_FP32", dims: [4] }],
      output: [{ name: "y", data_type: "TYPE_FP32", dims: [3] }],
      dynamic_batching: { preferred_batch_size: [4] },
    });
  });

  it("runs requests together, also where its file has a batch of 1", async () => {
    const requests = [1, 2, 1, 2, 2].map((rows, i) => {
      const data = Array.from({ length: rows * 4 }, (_, j) => i + j);
      return [{ inputs: [{ name: "x", datatype: "FP32", shape: [rows, 4], data }] }] as const;
    });
    const { answers, executions } = await sendTogether(serving.http, "single", requests);
    expect(executions).toBeLessThan(requests.length);
    for (const [i, [request]] of requests.entries()) {
      const alone = await serving.http.infer("regressor", request);
      expect(answers[i] && outputsOf(answers[i])).toEqual(outputsOf(alone));
    }
  });

  it("takes and gives BF16", async () => {
    // 1.5 and -2
    const given = Uint8Array.of(0xc0, 0x3f, 0x00, 0xc0);
    const input = {
      name: "x",
      datatype: "BF16",
      shape: [1, 2],
      parameters: { binary_data_size: 4 },
    };
    const outputs = [{ name: "y", parameters: { binary_data: true } }];
    const answer = await serving.http.infer(
      "halves",
      ...binaryInfer({ inputs: [input], outputs }, given),
    );
    // 3 and -4
    expect([...answer.bytes.subarray(-4)]).toEqual([0x40, 0x40, 0x80, 0xc0]);
  });

  it("takes and gives strings", async () => {
    const input = { name: "x", datatype: "BYTES", shape: [1, 2], data: ["tide", "Flüt"] };
    const { text } = await serving.http.infer("echo", { inputs: [input] });
    expect(JSON.parse(text).outputs).toMatchObject([{ shape: [1, 2], data: ["tide", "Flüt"] }]);
  });

  it("is refused when its file is none, without telling where it lies", async () => {
    const reason = await load("wrong");
    expect(reason).toContain("OpenVINO cannot read 'model.xml'");
    expect(reason).not.toContain(serving.models.path);
  });

  it("is refused when its config and its file disagree", async () => {
    expect(await load("mistaken")).toContain(
      "configuration expects datatype TYPE_INT32 for input 'x', model provides TYPE_FP32",
    );
  });

  it("leaves no process when it is unloaded", async () => {
    const processes = (): number => childrenOf(serving.server.process.pid);
    // Those that were refused may still be on their way out.
    await eventually(() => expect(processes()).toBe(loaded.length));
    await serving.http.post("/v2/repository/models/echo/unload");
    await eventually(() => expect(processes()).toBe(loaded.length - 1));
  });

  it("is run by a pool worker behind the queue", async () => {
    const behind = await startTidepool(
      [
        `--model-repository=${serving.models.path}`,
        `--python=${framework.python}`,
        "--exit-on-error=false",
      ],
      "dev",
    );
    const http = new HttpClient(behind.http);
    try {
      const regression = framework.caseOf("regressor");
      expect(await differenceFrom(regression, http, "regressor")).toBeLessThan(1e-5);
    } finally {
      http.close();
      await behind.stop();
    }
  });
});
