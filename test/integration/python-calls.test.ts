import { afterEach, describe, expect, it } from "vitest";
import path from "node:path";
import { type Answer, type Headers, HttpClient } from "../helpers/http-client.ts";
import { eventually } from "../helpers/eventually.ts";
import { freePort } from "../helpers/free-port.ts";
import { keysCommand } from "../helpers/keys-command.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { pythonModel } from "../helpers/python-models.ts";
import { scrape } from "../helpers/scrape.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";

const tensors = `max_batch_size: 0
  input [{ name: "IN" data_type: TYPE_INT32 dims: [ 1 ] }]
  output [{ name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }]`;
/** Calls a model with one less, until nothing is left. */
const countdown = (called: string): string => `
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self.one(request.inputs()[0].as_numpy()) for request in requests]

    def one(self, left):
        if left[0] == 0:
            return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", left)])
        tensor = pb_utils.Tensor("IN", left - 1)
        call = pb_utils.InferenceRequest(model_name="${called}", inputs=[tensor], requested_output_names=["OUT"])
        return call.exec()
`;
/** Answers how often it has executed. */
const counter = `
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    count = 0

    def execute(self, requests):
        self.count += len(requests)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([self.count], np.int32))]) for _ in requests]
`;

let models = new ModelDirectory();
let server: TidepoolProcess | undefined;
let http: HttpClient | undefined;

afterEach(async () => {
  http?.close();
  await server?.stop();
  models.remove();
  models = new ModelDirectory();
  server = undefined;
});

async function start(command: "serve" | "dev", ...flags: readonly string[]): Promise<void> {
  server = await startTidepool([`--model-repository=${models.path}`, ...flags], command);
  http = new HttpClient(server.http);
}

async function ask(model: string, value: number, headers?: Headers): Promise<Answer> {
  if (!http) throw new Error("start comes first");
  const inputs = [{ name: "IN", datatype: "INT32", shape: [1], data: [value] }];
  return http.infer(model, { inputs }, headers);
}

async function answered(model: string, value: number, headers?: Headers): Promise<number> {
  const { status, text } = await ask(model, value, headers);
  if (status !== 200) throw new Error(text);
  return JSON.parse(text).outputs[0].data[0];
}

describe.each(["serve", "dev"] as const)("What a Python model calls in tidepool %s", (command) => {
  it("may be the model itself, as long as an instance is left for it", async () => {
    pythonModel(models, "one", tensors, countdown("one"));
    pythonModel(models, "three", `${tensors} instance_group [{ count: 3 }]`, countdown("three"));
    pythonModel(models, "there", tensors, countdown("back"));
    pythonModel(models, "back", tensors, countdown("there"));
    await start(command);
    expect(await answered("one", 0)).toBe(0);
    expect(await answered("three", 2)).toBe(0);
    expect(await answered("there", 1)).toBe(0);
    for (const [model, value, given] of [
      ["one", 1, 1],
      ["three", 3, 3],
      ["there", 2, 1],
    ] as const) {
      const { status, text } = await ask(model, value);
      expect(status).toBe(500);
      expect(text).toContain(
        `model '${model}' calls itself while each of its instances waits for such a call: given ${given} in instance_group`,
      );
    }
  });

  it("is answered from the response cache where its config wants it", async () => {
    pythonModel(models, "caller", tensors, countdown("counter"));
    pythonModel(models, "counter", `${tensors} response_cache { enable: true }`, counter);
    await start(command, "--cache-config=local,size=1000000");
    expect(await answered("caller", 7)).toBe(1);
    expect(await answered("caller", 7)).toBe(1);
    expect(await answered("caller", 8)).toBe(2);
  });

  it("is of the tenant whose request the model executes", async () => {
    pythonModel(models, "caller", tensors, countdown("counter"));
    pythonModel(models, "counter", `${tensors} response_cache { enable: true }`, counter);
    const keys = new ModelDirectory();
    const where = `--api-keys=${path.join(keys.path, "keys.json")}`;
    const keyOf = async (tenant: string): Promise<string> =>
      (await keysCommand("create", where, `--key-name=${tenant}`, `--key-tenant=${tenant}`)).out;
    const [one, other] = [await keyOf("one"), await keyOf("other")];
    await start(command, "--cache-config=local,size=1000000", where);
    const counts: number[] = [];
    for (const key of [one, other, one, other])
      counts.push(await answered("caller", 7, { "x-api-key": key }));
    expect(counts).toEqual([1, 2, 1, 2]);
    keys.remove();
  });

  it("does not wait for itself in the response cache", async () => {
    const cached = `${tensors} instance_group [{ count: 2 }] response_cache { enable: true }`;
    const source = countdown("same").replace("left - 1", "left");
    pythonModel(models, "same", cached, source);
    await start(command, "--cache-config=local,size=1000000");
    expect((await ask("same", 5)).text).toContain("model 'same' calls itself while each");
  });
});

describe("The response cache of a pool worker", () => {
  it("is counted by the gateway, and shown by the pool worker", async () => {
    pythonModel(models, "caller", tensors, countdown("counter"));
    pythonModel(models, "counter", `${tensors} response_cache { enable: true }`, counter);
    const port = await freePort();
    await start("dev", "--cache-config=local,size=1000000", `--pool-metrics-port=${port}`);
    for (let i = 0; i < 3; i++) await answered("caller", 7);
    await eventually(async () => {
      const seen = await scrape(server?.metrics ?? "");
      const of = '{model="counter",version="1"}';
      expect(seen.get(`nv_cache_num_hits_per_model${of}`)).toBe(2);
      expect(seen.get(`nv_cache_num_misses_per_model${of}`)).toBe(1);
      const own = [...(await scrape(`127.0.0.1:${port}`))];
      const entries = own.filter(([name]) => name.includes("pool_worker_cache_num_entries"));
      expect(entries.map(([, value]) => value)).toEqual([1]);
    });
  });
});

describe("Models of two pools that call each other", () => {
  it("do not wait for each other when no instance is left, nor call without end", async () => {
    pythonModel(models, "there", tensors, countdown("back"));
    pythonModel(models, "back", tensors, countdown("there"));
    const settings = new ModelDirectory();
    const bounds = "min-workers: 1, max-workers: 1";
    settings.write(
      "tidepool.yaml",
      `pools:\n  - { name: here, models: [there], ${bounds} }\n  - { name: far, models: [back], ${bounds} }`,
    );
    await start("dev", `--pool-config=${path.join(settings.path, "tidepool.yaml")}`);
    expect(await answered("there", 1)).toBe(0);
    const { status, text } = await ask("there", 2);
    expect(status).toBe(500);
    expect(text).toContain(
      "model 'there' calls itself while each of its instances waits for such a call: given 1 in instance_group",
    );
    settings.remove();
  });
});

describe("A model with sequences, called by a Python model", () => {
  const source = countdown("sums").replace(
    'model_name="sums"',
    'model_name="sums", correlation_id=5, flags=pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START',
  );
  const write = (): void => {
    pythonModel(models, "caller", tensors, source);
    pythonModel(models, "sums", `${tensors} sequence_batching { }`, counter);
  };

  it("answers in tidepool serve", async () => {
    write();
    await start("serve");
    expect(await answered("caller", 3)).toBe(1);
  });

  it("is refused in a pool worker, which might have another part of the sequence", async () => {
    write();
    await start("dev");
    expect((await ask("caller", 3)).text).toContain(
      "model 'sums' has sequence_batching and cannot be called by a model of its own pool: expected the two in different pools",
    );
  });
});
