import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { errorOf, type HttpClient, type Headers } from "../helpers/http-client.ts";
import type { GrpcClient } from "../helpers/grpc-client.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { scrape } from "../helpers/scrape.ts";
import { type Serving, startCommand, stopServing } from "../helpers/serving.ts";
import { rowOf, timesModel } from "../helpers/times-model.ts";
import type { TidepoolProcess } from "../helpers/tidepool-process.ts";

const cached = "response_cache { enable: true }";
const batches = "max_batch_size: 8";

function step(model: string, from: string, to: string): string {
  return `{ model_name: "${model}" model_version: -1 input_map { key: "x" value: "${from}" } output_map { key: "y" value: "${to}" } }`;
}

function writeModels(models: ModelDirectory): void {
  models.model("plain", { 1: timesModel(1) }, batches);
  models.model("cached", { 1: timesModel(1) }, `${batches} ${cached}`);
  models.model("reloaded", { 1: timesModel(1) }, `${batches} ${cached}`);
  models.model("preprocessor", { 1: timesModel(2) }, batches);
  models.model("classifier", { 1: timesModel(3) }, `${batches} ${cached}`);
  const tensor = "data_type: TYPE_FP32 dims: [ 2 ]";
  models.write(
    "pipeline/config.pbtxt",
    `platform: "ensemble" ${batches} input [{ name: "x" ${tensor} }] output [{ name: "y" ${tensor} }]
    ensemble_scheduling { step [ ${step("preprocessor", "x", "z")}, ${step("classifier", "z", "y")} ] }`,
  );
  models.write("pipeline/1/.keep", "");
}

const flags = [
  "--model-control-mode=explicit",
  "--load-model=*",
  "--cache-config=local,size=1048576",
];

describe.each(["serve", "dev"] as const)(
  "the response cache of %s",
  { timeout: 60_000 },
  (command) => {
    let running: Serving;
    let server: TidepoolProcess;
    let http: HttpClient;
    let grpc: GrpcClient;
    beforeAll(async () => {
      const models = new ModelDirectory();
      writeModels(models);
      running = await startCommand(command, models, ...flags);
      ({ server, http, grpc } = running);
    }, 60_000);
    afterAll(() => stopServing(running));

    /** How often each thing was counted of a model. */
    async function counts(model: string): Promise<Readonly<Record<string, number>>> {
      const { text } = await http.get(`/v2/models/${model}/stats`);
      const [stats] = JSON.parse(text).model_stats;
      const { success, cache_hit: hit, cache_miss: miss } = stats.inference_stats;
      const inferences = stats.inference_count;
      return { success: success.count, hit: hit.count, miss: miss.count, inferences };
    }

    async function ask(model: string, value: number, headers: Headers = {}): Promise<unknown> {
      const answer = await http.infer(model, rowOf(value, value), headers);
      return JSON.parse(answer.text).outputs?.[0].data[0] ?? errorOf(answer);
    }

    it("answers the same request again without running it, over both wires", async () => {
      const asked = {
        modelName: "cached",
        inputs: [{ name: "x", datatype: "FP32", shape: [1, 2] }],
      };
      const rawInputContents = [Buffer.from(Float32Array.of(4, 4).buffer)];
      expect(await ask("cached", 4)).toBe(4);
      const response = await grpc.infer({ ...asked, id: "7", rawInputContents });
      expect(response).toMatchObject({ id: "7", modelVersion: "1" });
      expect(response["rawOutputContents"]).toEqual(rawInputContents);
      expect(await counts("cached")).toEqual({ success: 2, hit: 1, miss: 1, inferences: 1 });
    });

    it("does so only for a model whose config wants it", async () => {
      expect([await ask("plain", 4), await ask("plain", 4)]).toEqual([4, 4]);
      expect(await counts("plain")).toEqual({ success: 2, hit: 0, miss: 0, inferences: 2 });
      const series = await scrape(server.metrics);
      expect(series.get('nv_cache_num_hits_per_model{model="cached",version="1"}')).toBe(1);
      expect(series.get('nv_cache_num_misses_per_model{model="cached",version="1"}')).toBe(1);
      expect(
        series.get('nv_cache_hit_duration_per_model{model="cached",version="1"}'),
      ).toBeGreaterThan(0);
      expect([...series.keys()].filter((name) => /^nv_cache.*plain/u.test(name))).toEqual([]);
    });

    it("lets a request ask to be run, by header or by parameter", async () => {
      const before = await counts("cached");
      await ask("cached", 4, { "Cache-Control": "max-age=0, no-cache" });
      await http.infer("cached", { ...rowOf(4, 4), parameters: { cache_control: "no-store" } });
      const parameters = { cache_control: { stringParam: "no-cache" } };
      await grpc.infer({
        modelName: "cached",
        parameters,
        inputs: [{ name: "x", datatype: "FP32", shape: [1, 2] }],
        rawInputContents: [Buffer.from(Float32Array.of(4, 4).buffer)],
      });
      expect(await counts("cached")).toEqual({
        ...before,
        success: (before["success"] ?? 0) + 3,
        inferences: (before["inferences"] ?? 0) + 3,
      });
    });

    it("answers the classifier of an ensemble from what another request has left", async () => {
      expect(await ask("classifier", 8)).toBe(24);
      expect(await ask("pipeline", 4)).toBe(24);
      expect(await counts("classifier")).toEqual({ success: 2, hit: 1, miss: 1, inferences: 1 });
      expect(await counts("pipeline")).toMatchObject({ success: 1, hit: 0, inferences: 1 });
    });

    it("forgets one model's answers when it is told to", async () => {
      const [flushed, kept] = [await counts("cached"), await counts("classifier")];
      const told = await http.post("/v2/models/cached/cache/flush");
      expect([told.status, told.text]).toEqual([200, ""]);
      await ask("cached", 4);
      await ask("classifier", 8);
      expect((await counts("cached"))["miss"]).toBe((flushed["miss"] ?? 0) + 1);
      expect((await counts("classifier"))["hit"]).toBe((kept["hit"] ?? 0) + 1);
      const unknown = await http.post("/v2/models/nobody/cache/flush");
      expect([unknown.status, errorOf(unknown)]).toEqual([
        404,
        "Request for unknown model: 'nobody' is not found",
      ]);
    });

    it("never answers from before a reload", async () => {
      expect([await ask("reloaded", 5), await ask("reloaded", 5)]).toEqual([5, 5]);
      running.models.write("reloaded/1/model.onnx", timesModel(10));
      expect((await http.post("/v2/repository/models/reloaded/load")).status).toBe(200);
      expect([await ask("reloaded", 5), await ask("reloaded", 5)]).toEqual([50, 50]);
    });
  },
);
