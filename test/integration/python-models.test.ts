import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, realpathSync, symlinkSync } from "node:fs";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { HttpClient } from "../helpers/http-client.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { lives, moodyModel, order, pythonModel, said } from "../helpers/python-models.ts";
import { scrape } from "../helpers/scrape.ts";
import {
  startTidepool,
  type TidepoolCommand,
  type TidepoolProcess,
} from "../helpers/tidepool-process.ts";

const python = path.join(import.meta.dirname, "../../.tidepool/venv/bin/python");
const numbers = "data_type: TYPE_FP32 dims: [ -1 ]";
const identity = `max_batch_size: 8
  input [{ name: "IN" ${numbers} }]
  output [{ name: "OUT" ${numbers} }]`;
const identitySource = `
import sys
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", r.inputs()[0].as_numpy())]) for r in requests]
`;

let models = new ModelDirectory();
let server: TidepoolProcess | undefined;
let http: HttpClient | undefined;

async function start(command: TidepoolCommand, ...flags: readonly string[]): Promise<HttpClient> {
  server = await startTidepool([`--model-repository=${models.path}`, ...flags], command);
  http = new HttpClient(server.http);
  return http;
}

afterEach(async () => {
  http?.close();
  await server?.stop();
  models.remove();
  models = new ModelDirectory();
  server = undefined;
});

function values(length: number): { body: Buffer; headers: Record<string, string>; bytes: Buffer } {
  const bytes = Buffer.from(Float32Array.from({ length }, (_, i) => i).buffer);
  const head = JSON.stringify({
    inputs: [
      {
        name: "IN",
        datatype: "FP32",
        shape: [1, length],
        parameters: { binary_data_size: bytes.byteLength },
      },
    ],
    parameters: { binary_data_output: true },
  });
  const headers = { "inference-header-content-length": String(head.length) };
  return { body: Buffer.concat([Buffer.from(head), bytes]), headers, bytes };
}

describe.each(["serve", "dev"] as const)("Python models in tidepool %s", (command) => {
  it("answer small and large tensors as they came, many at a time", async () => {
    pythonModel(models, "identity", identity, identitySource);
    const client = await start(command);
    const sizes = [1, 1000, 8191, 8192, 100_000, 500_000];
    const answers = sizes.flatMap((size) =>
      Array.from({ length: 4 }, async () => {
        const { body, headers, bytes } = values(size);
        const answer = await client.infer("identity", body, headers);
        expect(answer.status).toBe(200);
        const headLength = Number(answer.headers["inference-header-content-length"]);
        expect(answer.bytes.subarray(headLength).equals(bytes)).toBe(true);
      }),
    );
    await Promise.all(answers);
  });

  it("are replaced when their process is killed", async () => {
    moodyModel(models);
    const client = await start(command);
    const pid = await said(order(client, "fine"));
    const killed = await order(client, "die");
    expect(killed.status).toBe(503);
    expect(killed.text).toContain("died while it ran the request: killed by SIGKILL");
    expect(await said(order(client, "fine"))).not.toBe(pid);
    expect(lives(pid)).toBe(false);
  });

  it("call others of the same pool, more at a time than a pool worker has places", async () => {
    pythonModel(models, "identity", identity, identitySource);
    pythonModel(
      models,
      "caller",
      `${identity} instance_group [{ count: 2 }]`,
      `
import asyncio
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    async def execute(self, requests):
        return await asyncio.gather(*[self.one(request) for request in requests])

    async def one(self, request):
        tensor = pb_utils.Tensor("IN", request.inputs()[0].as_numpy() + 1)
        called = pb_utils.InferenceRequest(model_name="identity", inputs=[tensor], requested_output_names=["OUT"])
        return await called.async_exec()
`,
    );
    const client = await start(command);
    const inputs = [{ name: "IN", datatype: "FP32", shape: [1, 2], data: [1, 2] }];
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => client.infer("caller", { inputs })),
    );
    expect(new Set(answers.map(({ text }) => JSON.stringify(JSON.parse(text).outputs)))).toEqual(
      new Set([
        '[{"name":"OUT","datatype":"FP32","shape":[1,2],"data":[2.0,3.0]}]'.replaceAll(".0", ""),
      ]),
    );
  });
});

describe("Python models in tidepool serve", () => {
  it("show metrics of their own, until they are unloaded", async () => {
    pythonModel(
      models,
      "counting",
      identity,
      `
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.family = pb_utils.MetricFamily(name="answers_total", description="how many", kind=pb_utils.MetricFamily.COUNTER)
        self.metric = self.family.Metric(labels={"model": args["model_name"]})

    def execute(self, requests):
        self.metric.increment(len(requests))
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", r.inputs()[0].as_numpy())]) for r in requests]
`,
    );
    const client = await start("serve", "--model-control-mode=explicit", "--load-model=counting");
    const inputs = [{ name: "IN", datatype: "FP32", shape: [1, 1], data: [1] }];
    for (let i = 0; i < 3; i++) await client.infer("counting", { inputs });
    const metrics = server?.metrics ?? "";
    const series = 'answers_total{model="counting"}';
    await eventually(async () => expect((await scrape(metrics)).get(series)).toBe(3));
    await client.post("/v2/repository/models/counting/unload");
    await eventually(async () => expect((await scrape(metrics)).has(series)).toBe(false));
  });

  it.each(["folder", "archive"] as const)(
    "run in the environment that their config names: a %s",
    async (kind) => {
      const folder = path.join(models.path, "own/environment");
      mkdirSync(path.join(folder, "bin"), { recursive: true });
      symlinkSync(python, path.join(folder, "bin/python"));
      let place = "environment";
      if (kind === "archive") {
        place = "environment.tar.gz";
        execFileSync("tar", ["-czf", path.join(models.path, "own", place), "-C", folder, "."]);
        models.remove("own/environment");
      }
      moodyModel(models);
      const parameter = `parameters [{ key: "EXECUTION_ENV_PATH" value: { string_value: "$$TRITON_MODEL_DIRECTORY/${place}" } }]`;
      pythonModel(
        models,
        "own",
        `${parameter} output [{ name: "OUT" data_type: TYPE_STRING dims: [ 1 ] }] input [{ name: "IN" ${numbers} optional: true }]`,
        `
import os
import sys
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        text = np.array([os.environ["VIRTUAL_ENV"]], dtype=object)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", text)]) for _ in requests]
`,
      );
      // The interpreter behind the link finds its packages by what surrounds the link.
      const packages = execFileSync(python, ["-c", "import numpy; print(numpy.__path__[0])"]);
      process.env["PYTHONPATH"] = path.dirname(packages.toString().trim());
      try {
        const client = await start("serve");
        const answer = await client.infer("own", { inputs: [] });
        const found = JSON.parse(answer.text).outputs[0].data[0];
        expect(found).toContain(kind === "folder" ? folder : "python-environments");
      } finally {
        delete process.env["PYTHONPATH"];
      }
    },
  );

  it("say what is wrong with an environment that is none", async () => {
    pythonModel(
      models,
      "own",
      `${identity} parameters [{ key: "EXECUTION_ENV_PATH" value: { string_value: "$$TRITON_MODEL_DIRECTORY/../other" } }]`,
      identitySource,
    );
    const client = await start("serve", "--exit-on-error=false");
    const index = await client.post("/v2/repository/index");
    expect(JSON.parse(index.text)[0].reason).toBe(
      "model 'own': EXECUTION_ENV_PATH: given '$$TRITON_MODEL_DIRECTORY/../other', which does not exist",
    );
  });

  it("name the setting of an environment that cannot be unpacked, and not what is in it", async () => {
    const parameter = `parameters [{ key: "EXECUTION_ENV_PATH" value: { string_value: "$$TRITON_MODEL_DIRECTORY/environment.tar.gz" } }]`;
    pythonModel(models, "own", `${identity} ${parameter}`, identitySource);
    models.write("own/environment.tar.gz", "a secret");
    const client = await start("serve", "--exit-on-error=false");
    const index = await client.post("/v2/repository/index");
    expect(JSON.parse(index.text)[0].reason).toBe(
      "model 'own': EXECUTION_ENV_PATH: given '$$TRITON_MODEL_DIRECTORY/environment.tar.gz', which cannot be unpacked",
    );
  });

  it("say what is wrong when the interpreter cannot be started, or has no numpy", async () => {
    pythonModel(models, "identity", identity, identitySource);
    const broken = path.join(models.path, "identity/python");
    models.write("identity/python", "#!/nowhere/python\n");
    chmodSync(broken, 0o755);
    const client = await start("serve", "--exit-on-error=false", `--python=${broken}`);
    const index = await client.post("/v2/repository/index");
    const subject = "the Python process ended while it loaded the model:";
    expect(JSON.parse(index.text)[0].reason).toBe(
      `${subject} it cannot be started (ENOENT); see --python`,
    );
    // Without what surrounds the link, it is an interpreter without packages.
    models.remove("identity");
    await server?.stop();
    pythonModel(models, "identity", identity, identitySource);
    symlinkSync(realpathSync(python), path.join(models.path, "identity/python"));
    const other = await start(
      "serve",
      "--exit-on-error=false",
      `--python=${models.path}/identity/python`,
    );
    const reason = JSON.parse((await other.post("/v2/repository/index")).text)[0].reason;
    expect(reason).toBe(
      `${subject} ended with exit code 1: No module named 'numpy': Python models need numpy beside the interpreter that --python names`,
    );
  });
});
