import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { lives, moodyModel, order, pythonModel, said } from "../helpers/python-models.ts";
import { type Serving, startServing, stopServing } from "../helpers/serving.ts";

/** Has the other model answer. */
const caller = `
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        order = pb_utils.Tensor("ORDER", np.array(['{"mood": "fine"}'], dtype=object))
        call = pb_utils.InferenceRequest(model_name="moody", inputs=[order], requested_output_names=["ANSWER"])
        return [call.exec() for _ in requests]
`;

let running: Serving | undefined;

async function start(...flags: readonly string[]): Promise<Serving> {
  const models = new ModelDirectory();
  moodyModel(models);
  models.write("moody/marks/.keep", "");
  running = await startServing(models, ...flags);
  return running;
}

afterEach(async () => {
  if (running) await stopServing(running);
  running = undefined;
});

const died = "model 'moody': instance 'moody_0' died while it ran the request: ";

describe("a Python model's process", () => {
  it("takes less than 60 MB with numpy alone", async () => {
    const { http } = await start();
    const pid = await said(order(http, "fine"));
    const [, kilobytes] =
      /VmRSS:\s+(\d+) kB/u.exec(readFileSync(`/proc/${String(pid)}/status`, "utf8")) ?? [];
    expect(Number(kilobytes)).toBeLessThan(60_000);
  });

  it("is replaced when it is killed, and its request gets the reason", async () => {
    const { http } = await start();
    const before = await said(order(http, "fine"));
    const killed = await order(http, "die");
    expect(killed.status).toBe(503);
    expect(JSON.parse(killed.text).error).toBe(`${died}killed by SIGKILL`);
    const after = await said(order(http, "fine"));
    expect(after).not.toBe(before);
    expect(lives(before)).toBe(false);
  });

  it("leaves to the next one what it had not begun when it was killed", async () => {
    const { http } = await start();
    const many = (count: number): Promise<unknown>[] =>
      Array.from({ length: count }, () => said(order(http, "fine")));
    // From now on executions are known to be short, and are put ahead of the one that runs.
    for (let i = 0; i < 10; i++) await Promise.all(many(10));
    const before = many(8);
    const killed = order(http, "die");
    await Promise.all([...before, ...many(16)]);
    expect((await killed).status).toBe(503);
  });

  it("is replaced when it exits", async () => {
    const { http } = await start();
    const ended = await order(http, "exit");
    expect(JSON.parse(ended.text).error).toBe(`${died}ended with exit code 7`);
    expect(await said(order(http, "fine"))).toEqual(expect.any(Number));
  });

  it("goes on after sys.exit, and its request gets the reason", async () => {
    const { http } = await start();
    const before = await said(order(http, "fine"));
    const quit = await order(http, "quit");
    expect(quit.status).toBe(500);
    expect(JSON.parse(quit.text).error).toContain("message: SystemExit: enough\n\nAt:\n");
    expect(await said(order(http, "fine"))).toBe(before);
  });

  it("is replaced when it does not come back from execute", async () => {
    const { http } = await start("--python-execute-timeout=1");
    const pid = await said(order(http, "fine"));
    const late = await order(http, "loop");
    expect(JSON.parse(late.text).error).toBe(
      `${died}it took longer than --python-execute-timeout (1 s)`,
    );
    expect(lives(pid)).toBe(false);
    expect(await said(order(http, "fine"))).toEqual(expect.any(Number));
  });

  it("is replaced when it takes too much memory", async () => {
    const { http } = await start("--python-memory-limit=400");
    const greedy = await order(http, "hoard");
    expect(JSON.parse(greedy.text).error).toBe(
      `${died}it took more memory than --python-memory-limit (400 MiB)`,
    );
    expect(await said(order(http, "fine"))).toEqual(expect.any(Number));
  });

  it("may answer with more than the memory that is shared with it", async () => {
    const { http } = await start();
    const large = await order(http, "huge", { bytes: 300 * 2 ** 20 });
    expect(large.status).toBe(200);
    expect(large.bytes.byteLength).toBeGreaterThan(300 * 2 ** 20);
  });

  it("is not ready while it cannot be started again, and answers when it can", async () => {
    const { http, models } = await start();
    models.write("moody/marks/refuse", "");
    await order(http, "die");
    await eventually(async () => {
      expect((await http.get("/v2/models/moody/ready")).status).toBe(400);
    });
    expect((await http.get("/v2/health/live")).status).toBe(200);
    const waiting = said(order(http, "fine"));
    models.remove("moody/marks/refuse");
    expect(await waiting).toEqual(expect.any(Number));
    expect((await http.get("/v2/models/moody/ready")).status).toBe(200);
  });

  it("is waited for by the models that call it, too", async () => {
    const models = new ModelDirectory();
    moodyModel(models);
    pythonModel(
      models,
      "caller",
      `input [{ name: "NONE" data_type: TYPE_STRING dims: [ 1 ] optional: true }]
       output [{ name: "ANSWER" data_type: TYPE_STRING dims: [ 1 ] }]`,
      caller,
    );
    running = await startServing(models);
    const { http } = running;
    models.write("moody/marks/refuse", "");
    await order(http, "die");
    await eventually(async () => {
      expect((await http.get("/v2/models/moody/ready")).status).toBe(400);
    });
    const calling = said(http.infer("caller", { inputs: [] }));
    models.remove("moody/marks/refuse");
    expect(await calling).toEqual(expect.any(Number));
  });

  it("ends with its children when its model is unloaded, after finalize", async () => {
    const { http, models } = await start("--model-control-mode=explicit", "--load-model=moody");
    const pid = await said(order(http, "fine"));
    const child = await said(order(http, "child"));
    expect(lives(child)).toBe(true);
    await http.post("/v2/repository/models/moody/unload");
    await eventually(() => {
      expect(lives(pid)).toBe(false);
      expect(lives(child)).toBe(false);
    });
    expect(existsSync(path.join(models.path, "moody/marks/finalized"))).toBe(true);
  });

  it("ends with its children when the server is killed, whatever it does", async () => {
    const { http, server, models } = await start();
    const pid = await said(order(http, "fine"));
    const child = await said(order(http, "child"));
    order(http, "loop").catch(() => {});
    await eventually(() =>
      expect(existsSync(path.join(models.path, "moody/marks/looping"))).toBe(true),
    );
    server.process.kill("SIGKILL");
    await eventually(() => {
      expect(lives(pid)).toBe(false);
      expect(lives(child)).toBe(false);
    });
  });

  it("does not see what the server keeps for itself, and prints into its log", async () => {
    process.env["AWS_SECRET_ACCESS_KEY"] = "a secret";
    try {
      const { http, server } = await start();
      const environment = await said(order(http, "environment"));
      expect(environment).toMatchObject({ PATH: expect.any(String) });
      expect(environment).not.toHaveProperty("AWS_SECRET_ACCESS_KEY");
      await order(http, "log");
      const own = { model: "moody", version: "1", instance: "moody_0" };
      await eventually(() => {
        expect(server.lines).toContainEqual(
          expect.objectContaining({ ...own, msg: "a line on stdout", stream: "stdout" }),
        );
        expect(server.lines).toContainEqual(
          expect.objectContaining({ ...own, msg: "a warning of the model", level: "warn" }),
        );
      });
      expect(JSON.stringify(server.lines)).not.toContain("nobody wants to know");
    } finally {
      delete process.env["AWS_SECRET_ACCESS_KEY"];
    }
  });
});
