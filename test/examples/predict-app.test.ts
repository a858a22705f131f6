import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { predictApp } from "../../examples/clients/predict/app.ts";
import type { FileResult } from "../../examples/clients/predict/classify-files.ts";
import { Ensemble } from "../../examples/clients/predict/ensemble.ts";
import { freePort } from "../helpers/free-port.ts";
import { pythonModel } from "../helpers/python-models.ts";
import { serving } from "../helpers/serving.ts";

/** Its probabilities tell how large the batch was, and what a file's first byte is. */
const telling = `
import os
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        rows = pb_utils.get_input_tensor_by_name(request, "RAW_IMAGE").as_numpy()
        if b"B" in rows[:, 0].tobytes():
            reason = pb_utils.TritonError("a bad file", pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse(error=reason)
        died = os.path.join(os.path.dirname(__file__), "died")
        if b"D" in rows[:, 0].tobytes() and not os.path.exists(died):
            open(died, "w").close()
            os._exit(1)
        answer = [[len(rows), row[0]] for row in rows]
        return pb_utils.InferenceResponse([pb_utils.Tensor("output__0", np.array(answer, np.float32))])
`;

describe("predictApp", () => {
  const running = serving((models) =>
    pythonModel(
      models,
      "ensemble_model",
      `max_batch_size: 1000
       input [{ name: "RAW_IMAGE" data_type: TYPE_UINT8 dims: [ -1 ] }]
       output [{ name: "output__0" data_type: TYPE_FP32 dims: [ 2 ] }]`,
      telling,
    ),
  );
  let ensemble: Ensemble;
  beforeAll(() => {
    ensemble = new Ensemble(running.server.grpc);
  });
  afterAll(() => ensemble.close());

  async function predict(
    contents: readonly (string | Uint8Array<ArrayBuffer>)[],
    asked = ensemble,
  ): Promise<readonly FileResult[]> {
    const body = new FormData();
    for (const [i, content] of contents.entries())
      body.append("files", new Blob([content]), `${i}.png`);
    const response = await predictApp(asked).request("/predict", { method: "POST", body });
    expect(response.status).toBe(200);
    return JSON.parse(await response.text()).results;
  }

  it("asks for files in batches of at most 32, those of like sizes together", async () => {
    const contents = Array.from({ length: 40 }, (_, i) => "x".repeat(i < 8 ? 1000 : 1));
    const sizes = (await predict(contents)).map(
      (result) => "probabilities" in result && result.probabilities[0],
    );
    expect(sizes).toEqual(contents.map((_, i) => (i < 8 ? 8 : 32)));
  });

  it("gives every bad file an error of its own, and all others their result", async () => {
    const contents = Array.from({ length: 50 }, (_, i) => ([3, 4, 49].includes(i) ? "B" : "x"));
    for (const [i, result] of (await predict(contents)).entries()) {
      const wanted = contents[i] === "B" ? { error: "a bad file" } : { class: 1 };
      expect(result).toMatchObject({ filename: `${i}.png`, ...wanted });
    }
  });

  it("asks again when the model's process has just died", async () => {
    expect(await predict(["x", "D"])).toMatchObject([
      { probabilities: [2, 120] },
      { probabilities: [2, 68] },
    ]);
  });

  it("says of each file that there is no server", async () => {
    const nowhere = new Ensemble(`127.0.0.1:${await freePort()}`);
    const unavailable = "the server gave no answer: UNAVAILABLE";
    expect(await predict(["x", "y"], nowhere)).toEqual([
      { filename: "0.png", error: unavailable },
      { filename: "1.png", error: unavailable },
    ]);
    nowhere.close();
  });

  it("refuses files that are empty or too large, and nothing else for them", async () => {
    const large = new Uint8Array(10 * 2 ** 20 + 1);
    expect(await predict(["", large, "x"])).toEqual([
      { filename: "0.png", error: "a file of 0 bytes, expected 1 to 10485760" },
      { filename: "1.png", error: "a file of 10485761 bytes, expected 1 to 10485760" },
      { filename: "2.png", class: 1, probabilities: [1, 120] },
    ]);
  });

  it.for([
    ["a body that is no form", "files", 400, "multipart/form-data"],
    [
      "a form without files",
      new FormData(),
      400,
      "given 0 parts named 'files', expected 1 to 1000",
    ],
    ["more than 1000 files", formOf(1001), 400, "given 1001 parts"],
  ] as const)("refuses %s", async ([, body, status, reason]) => {
    const response = await predictApp(ensemble).request("/predict", { method: "POST", body });
    expect(response.status).toBe(status);
    expect(JSON.parse(await response.text()).error).toContain(reason);
  });

  it("refuses a body that says it is too large, before it comes", async () => {
    const headers = { "content-length": String(2 ** 30), "content-type": "multipart/form-data" };
    const response = await predictApp(ensemble).request("/predict", {
      method: "POST",
      body: "",
      headers,
    });
    expect(response.status).toBe(413);
  });
});

function formOf(count: number): FormData {
  const form = new FormData();
  for (let i = 0; i < count; i++) form.append("files", new Blob(["x"]), "x.png");
  return form;
}
