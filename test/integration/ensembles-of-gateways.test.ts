import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { deploy, type DeployedGateway, type Deployment } from "../helpers/deployment.ts";
import { eventually } from "../helpers/eventually.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { onnxModel, type OnnxTensor } from "../helpers/onnx-model.ts";
import { scrape } from "../helpers/scrape.ts";

const settings = "max_batch_size: 8 instance_group [{ count: 1 }]";
const tensors = `max_batch_size: 8 input [{ name: "IN" data_type: TYPE_FP32 dims: [ 2 ] }] output [{ name: "OUT" data_type: TYPE_FP32 dims: [ 2 ] }]`;
const row = { inputs: [{ name: "IN", datatype: "FP32", shape: [1, 2], data: [1, 2] }] };

/** A model that doubles, and an ensemble that doubles twice. */
function writeModels(models: ModelDirectory): void {
  const double = onnxModel({
    inputs: [tensor("X")],
    outputs: [tensor("Y")],
    nodes: [{ op: "Add", inputs: ["X", "X"], outputs: ["Y"] }],
  });
  models.model("double", { 1: double }, settings);
  const steps = step("IN", "m") + step("m", "OUT");
  const config = `name: "twice" platform: "ensemble" ${tensors} ensemble_scheduling { ${steps} }`;
  models.write("twice/config.pbtxt", config);
  models.write("twice/1/empty", "");
}

function tensor(name: string): OnnxTensor {
  return { name, datatype: "FP32", shape: ["n", 2] };
}

function step(from: string, to: string): string {
  return `step { model_name: "double" model_version: -1 input_map { key: "X" value: "${from}" } output_map { key: "Y" value: "${to}" } }`;
}

interface Statistics {
  readonly inference_count: number;
  readonly execution_count: number;
  readonly inference_stats: Readonly<Record<string, Readonly<Record<"count" | "ns", number>>>>;
}

async function statistics({ http }: DeployedGateway, model: string): Promise<Statistics> {
  return JSON.parse((await http.get(`/v2/models/${model}/stats`)).text).model_stats[0];
}

/** Nanoseconds. */
function infer({ inference_stats: stats }: Statistics): number {
  return stats["compute_infer"]?.ns ?? NaN;
}

describe("ensembles of several gateways", () => {
  let models: ModelDirectory;
  let deployment: Deployment;
  beforeAll(async () => {
    models = new ModelDirectory();
    writeModels(models);
    deployment = await deploy({
      models: models.path,
      gateways: 2,
      flags: ["--model-control-mode=explicit", "--load-model=twice"],
    });
  });
  afterAll(async () => {
    await deployment.stop();
    models.remove();
  });

  it("count together, with the time that their steps' executions took", async () => {
    const { gateways } = deployment;
    const asked = [0, 0, 1, 0, 1, 1, 1];
    for (const index of asked) {
      const answer = await gateways[index]?.http.infer("twice", row);
      expect(JSON.parse(answer?.text ?? "").outputs[0].data).toEqual([4, 8]);
    }
    const count = asked.length;
    for (const gateway of gateways) {
      const seen = await eventually(async () => {
        const found = await statistics(gateway, "twice");
        expect(found).toMatchObject({ inference_count: count, execution_count: count });
        return found;
      });
      const steps = await statistics(gateway, "double");
      // What went on between the executions belongs to none of them.
      const ratio = infer(seen) / infer(steps);
      expect(ratio).toBeGreaterThan(0.95);
      expect(ratio).toBeLessThan(1.05);
      const phases = ["compute_input", "compute_infer", "compute_output"];
      expect(phases.map((phase) => seen.inference_stats[phase]?.count)).toEqual(
        phases.map(() => count),
      );
      const series = await scrape(gateway.metrics);
      expect(series.get('nv_inference_count{model="twice",version="1"}')).toBe(count);
    }
  });

  it("go with what they are composed of, on all gateways, when that is asked of one", async () => {
    const [first, second] = deployment.gateways;
    const path = "/v2/repository/models/twice/unload";
    const answer = await first?.http.post(path, { parameters: { unload_dependents: true } });
    expect(answer?.status).toBe(200);
    for (const gateway of [first, second])
      await eventually(async () => {
        const { text } = (await gateway?.http.post("/v2/repository/index")) ?? { text: "" };
        const index: { name: string; reason?: string }[] = JSON.parse(text);
        expect(index.map(({ name, reason }) => [name, reason])).toEqual([
          ["double", "unloaded"],
          ["twice", "unloaded"],
        ]);
      });
  });
});
