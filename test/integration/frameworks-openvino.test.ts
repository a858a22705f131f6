import { describe, expect, it } from "vitest";
import { differenceFrom, outputsOf, sendTogether } from "../helpers/framework-models.ts";
import {
  bfloatCase,
  copyModel,
  frameworkCases,
  FrameworkServing,
} from "../helpers/framework-serving.ts";
import { HttpClient } from "../helpers/http-client.ts";
import { startTidepool } from "../helpers/tidepool-process.ts";

const serving = new FrameworkServing("openvino", {
  loaded: ["regressor", "single", "halves", "echo"],
  write(models, { python }) {
    models.write(
      "single/config.pbtxt",
      `max_batch_size: 4
       dynamic_batching { max_queue_delay_microseconds: 500000 preferred_batch_size: [ 4 ] }`,
    );
    models.write("broken/1/model.xml", "<net");
    copyModel(
      models,
      "regressor",
      "mistaken",
      `max_batch_size: 4
       input [{ name: "x" data_type: TYPE_INT32 dims: [ 4 ] }]
       output [{ name: "y" data_type: TYPE_FP32 dims: [ 3 ] }]`,
    );
    return [`--python=${python}`];
  },
});

describe("a model of OpenVINO", { timeout: 60_000 }, () => {
  frameworkCases(serving, "OpenVINO cannot read 'model.xml'");
  bfloatCase(serving, "x", "y");

  it.for(["regressor", "single"])("answers as numpy does: %s", async (model) => {
    expect(await serving.difference(model)).toBeLessThan(1e-5);
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

  it("takes and gives strings", async () => {
    const input = { name: "x", datatype: "BYTES", shape: [1, 2], data: ["tide", "Flüt"] };
    const { text } = await serving.http.infer("echo", { inputs: [input] });
    expect(JSON.parse(text).outputs).toMatchObject([{ shape: [1, 2], data: ["tide", "Flüt"] }]);
  });

  it("is refused when its config and its file disagree", async () => {
    expect(await serving.refusal("mistaken")).toContain(
      "configuration expects datatype TYPE_INT32 for input 'x', model provides TYPE_FP32",
    );
  });

  it("is run by a pool worker behind the queue", async () => {
    const behind = await startTidepool(
      [
        `--model-repository=${serving.modelsPath}`,
        `--python=${serving.python}`,
        "--exit-on-error=false",
      ],
      "dev",
    );
    const http = new HttpClient(behind.http);
    try {
      const regression = serving.caseOf("regressor");
      expect(await differenceFrom(regression, http, "regressor")).toBeLessThan(1e-5);
    } finally {
      http.close();
      await behind.stop();
    }
  });
});
