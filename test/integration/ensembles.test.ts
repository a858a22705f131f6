import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { busyModel } from "../helpers/busy-model.ts";
import { eventually } from "../helpers/eventually.ts";
import { errorOf, HttpClient } from "../helpers/http-client.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { onnxModel } from "../helpers/onnx-model.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";

const one = "instance_group [{ count: 1 }]";
const batches = "max_batch_size: 64";

/** The pipeline of the reference's documents, with steps that ONNX can take: a numeral becomes ten probabilities. */
function writePipeline(models: ModelDirectory): void {
  const text = { name: "text", datatype: "BYTES", shape: ["n", 1] } as const;
  const tokens = { name: "tokens", datatype: "FP32", shape: ["n", 1] } as const;
  const logits = { name: "logits", datatype: "FP32", shape: ["n", 10] } as const;
  const weights = { name: "weights", datatype: "FP32", shape: [10] } as const;
  const tokenizer = onnxModel({
    inputs: [text],
    outputs: [tokens],
    nodes: [{ op: "Cast", inputs: ["text"], outputs: ["tokens"], attributes: { to: 1 } }],
  });
  const bert = onnxModel({
    inputs: [{ ...tokens, name: "input_ids" }],
    outputs: [logits],
    nodes: [{ op: "Mul", inputs: ["input_ids", "weights"], outputs: ["logits"] }],
    initializers: [{ ...weights, bytes: new Uint8Array(Float32Array.from(tenths).buffer) }],
  });
  const postprocessor = onnxModel({
    inputs: [{ ...logits, name: "raw_logits" }],
    outputs: [{ ...logits, name: "final" }],
    nodes: [{ op: "Softmax", inputs: ["raw_logits"], outputs: ["final"], attributes: { axis: 1 } }],
  });
  models.model("tokenizer", { 1: tokenizer }, batches);
  models.model("bert_model", { 1: bert }, `${batches} dynamic_batching {}`);
  models.model("postprocessor", { 1: postprocessor }, batches);
  writeEnsemble(
    models,
    "ensemble_pipeline",
    `${batches} input [{ name: "raw_text" data_type: TYPE_STRING dims: [ 1 ] }] output [{ name: "predictions" data_type: TYPE_FP32 dims: [ 10 ] }]`,
    `step [
      { model_name: "tokenizer" model_version: -1 input_map { key: "text" value: "raw_text" } output_map { key: "tokens" value: "preprocessed" } },
      { model_name: "bert_model" model_version: -1 input_map { key: "input_ids" value: "preprocessed" } output_map { key: "logits" value: "model_output" } },
      { model_name: "postprocessor" model_version: -1 input_map { key: "raw_logits" value: "model_output" } output_map { key: "final" value: "predictions" } }
    ]`,
  );
}

const tenths = Array.from({ length: 10 }, (_, i) => i / 10);

function writeEnsemble(models: ModelDirectory, name: string, tensors: string, steps: string): void {
  const config = `name: "${name}" platform: "ensemble" ${tensors} ensemble_scheduling { ${steps} }`;
  models.write(`${name}/config.pbtxt`, config);
  models.write(`${name}/1/empty`, "");
}

/** Ensembles of models that take long: two at once, and two after one another. */
function writeBusy(models: ModelDirectory): void {
  models.model("left", { 1: busyModel() }, one);
  models.model("right", { 1: busyModel() }, one);
  const pair = `input [ ${tensor("in")} ] output [ ${tensor("a")}, ${tensor("b")} ]`;
  writeEnsemble(models, "fan", pair, step("left", "in", "a") + step("right", "in", "b"));
  const single = `input [ ${tensor("in")} ] output [ ${tensor("out")} ]`;
  writeEnsemble(models, "chain", single, step("left", "in", "m") + step("right", "m", "out"));
}

function tensor(name: string): string {
  return `{ name: "${name}" data_type: TYPE_INT64 dims: [ 1 ] }`;
}

function step(model: string, from: string, to: string): string {
  return `step { model_name: "${model}" model_version: -1 input_map { key: "x" value: "${from}" } output_map { key: "y" value: "${to}" } }`;
}

const busy = (turns: number, input = "in"): object => ({
  inputs: [{ name: input, datatype: "INT64", shape: [1], data: [turns] }],
});
const numerals = (...texts: readonly string[]): object => ({
  inputs: [{ name: "raw_text", datatype: "BYTES", shape: [texts.length, 1], data: texts }],
});

describe.each(["serve", "dev"] as const)("ensembles of tidepool %s", (command) => {
  let models: ModelDirectory;
  let server: TidepoolProcess;
  let http: HttpClient;

  beforeAll(async () => {
    models = new ModelDirectory();
    writePipeline(models);
    writeBusy(models);
    const flags = ["explicit", "ensemble_pipeline", "fan", "chain"].map((value, i) =>
      i === 0 ? `--model-control-mode=${value}` : `--load-model=${value}`,
    );
    server = await startTidepool([`--model-repository=${models.path}`, ...flags], command);
    http = new HttpClient(server.http);
  }, 60_000);

  afterAll(async () => {
    http.close();
    await server.stop();
    models.remove();
  });

  interface Statistics {
    readonly inference_count: number;
    readonly execution_count: number;
    readonly inference_stats: Readonly<
      Record<string, { readonly count: number; readonly ns: number }>
    >;
  }

  async function statistics(model: string): Promise<Statistics> {
    return JSON.parse((await http.get(`/v2/models/${model}/stats`)).text).model_stats[0];
  }

  const executions = async (model: string): Promise<number> =>
    (await statistics(model)).execution_count;

  const computed = async (model: string): Promise<number> =>
    ((await statistics(model)).inference_stats["compute_infer"]?.ns ?? NaN) / 1e6;

  it("run the pipeline of the reference's documents", async () => {
    const answer = await http.infer("ensemble_pipeline", numerals("0", "20"));
    const [{ shape, data }] = JSON.parse(answer.text).outputs;
    expect(shape).toEqual([2, 10]);
    const likely = tenths.map((weight) => Math.exp(20 * weight));
    const sum = likely.reduce((total, value) => total + value, 0);
    for (const [i, value] of likely.entries()) {
      expect(data[i]).toBeCloseTo(0.1, 5);
      expect(data[10 + i]).toBeCloseTo(value / sum, 5);
    }
    for (const name of ["ensemble_pipeline", "tokenizer", "bert_model", "postprocessor"])
      expect(await statistics(name)).toMatchObject({ inference_count: 2, execution_count: 1 });
  });

  it("fail in the words of the step that fails", async () => {
    const answer = await http.infer("ensemble_pipeline", numerals("no number"));
    expect(answer.status).toBe(500);
    expect(errorOf(answer)).toMatch(/^in ensemble 'ensemble_pipeline', /u);
    expect((await statistics("ensemble_pipeline")).inference_stats["fail"]?.count).toBe(1);
    expect((await http.infer("ensemble_pipeline", numerals("1"))).status).toBe(200);
  });

  // However few cores there are: what runs at the same time takes less together than its parts added up.
  it("run steps at the same time that do not need each other", async () => {
    const turns = 300_000;
    expect((await http.infer("fan", busy(1))).status).toBe(200);
    const before = (await computed("left")) + (await computed("right"));
    const began = performance.now();
    const answer = await http.infer("fan", busy(turns));
    const together = performance.now() - began;
    expect(JSON.parse(answer.text).outputs).toMatchObject([{ data: [turns] }, { data: [turns] }]);
    await eventually(async () => {
      const parts = (await computed("left")) + (await computed("right")) - before;
      expect(together).toBeLessThan(0.8 * parts);
    });
  });

  it("take a step out of its queue when nobody waits for the ensemble any more", async () => {
    const before = { left: await executions("left"), right: await executions("right") };
    let blocked = true;
    const blocker = http.infer("right", busy(4_000_000, "x")).finally(() => (blocked = false));
    const hungUp = new AbortController();
    const abandoned = fetch(`${http.origin}/v2/models/chain/infer`, {
      method: "POST",
      body: JSON.stringify(busy(1)),
      signal: hungUp.signal,
    });
    abandoned.catch(() => {});
    await eventually(async () => expect(await executions("left")).toBe(before.left + 1));
    hungUp.abort();
    await expect(abandoned).rejects.toThrow("aborted");
    await eventually(async () =>
      expect((await statistics("chain")).inference_stats["fail"]?.count).toBe(1),
    );
    expect(blocked).toBe(true);
    expect((await blocker).status).toBe(200);
    expect((await http.infer("right", busy(1, "x"))).status).toBe(200);
    // The blocker and the last one: the ensemble's step, which stood between them, has not run.
    await eventually(async () => expect(await executions("right")).toBe(before.right + 2));
  }, 60_000);

  it("drop no request when a part is loaded anew", async () => {
    const ending = new AbortController();
    let answered = 0;
    const clients = Array.from({ length: 4 }, async () => {
      while (!ending.signal.aborted) {
        const answer = await http.infer("ensemble_pipeline", numerals("3"));
        if (answer.status !== 200) throw new Error(answer.text);
        answered++;
      }
    });
    const all = Promise.all(clients);
    all.catch(() => {});
    for (let reload = 0; reload < 3; reload++) {
      const goal = answered + 20;
      const config = `backend: "onnxruntime" ${batches} # ${reload}`;
      models.write("postprocessor/config.pbtxt", config);
      expect((await http.post("/v2/repository/models/postprocessor/load")).status).toBe(200);
      await eventually(() => expect(answered).toBeGreaterThan(goal));
    }
    ending.abort();
    await all;
  }, 60_000);
});
