import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { python } from "../conformance/python.ts";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { eventually } from "../helpers/eventually.ts";
import { freePort } from "../helpers/free-port.ts";
import { keysCommand } from "../helpers/keys-command.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import {
  startTidepool,
  type TidepoolCommand,
  type TidepoolProcess,
} from "../helpers/tidepool-process.ts";

const run = promisify(execFile);
const models = new ModelDirectory();
models.model("steady", { 1: addingModel(1) });
models.model("other", { 1: addingModel(2) });
const folder = mkdtempSync(path.join(tmpdir(), "tidepool-keys-"));
const keyFile = path.join(folder, "keys.json");
afterAll(() => {
  models.remove();
  rmSync(folder, { recursive: true });
});

/** Asks with the real client, over HTTP or gRPC, and prints what came of metadata, an inference, and an unload. */
const client = `
import sys
import numpy
transport, url, key = sys.argv[1:]
if transport == "http":
    import tritonclient.http as triton
else:
    import tritonclient.grpc as triton
client = triton.InferenceServerClient(url)
headers = {"authorization": "Bearer " + key} if key else {}
given = triton.InferInput("x", [1], "FP32")
given.set_data_from_numpy(numpy.zeros(1, dtype=numpy.float32))
def tell(ask):
    try:
        return str(ask())
    except Exception as error:
        return str(error.status())
print(tell(lambda: client.get_server_metadata(headers=headers) and "ok"))
print(tell(lambda: client.infer("steady", [given], headers=headers).as_numpy("y")[0]))
print(tell(lambda: client.infer("other", [given], headers=headers).as_numpy("y")[0]))
print(tell(lambda: client.unload_model("steady", headers=headers)))
print(tell(lambda: client.is_server_live(headers=headers)))
`;

async function triton(transport: string, url: string, key: string): Promise<readonly string[]> {
  const { stdout } = await run(python, ["-c", client, transport, url, key]);
  return stdout.trim().split("\n");
}

/** The status that curl gets. */
async function curl(url: string, ...args: readonly string[]): Promise<string> {
  const all = ["-s", "-o", "/dev/null", "-w", "%{http_code}", ...args, url];
  return (await run("curl", all)).stdout;
}

describe.each<TidepoolCommand>(["serve", "dev"])("keys of %s", (command) => {
  let server: TidepoolProcess;
  let key: string;
  let pool: string;
  let autoscaler: string;
  beforeAll(async () => {
    const where = `--api-keys=${keyFile}`;
    key = (await keysCommand("create", where, "--key-name=ci", "--key-model=steady")).out;
    const ports = [await freePort(), await freePort()];
    [pool = "", autoscaler = ""] = ports.map((port) => `http://127.0.0.1:${port}/metrics`);
    const metrics = [`--pool-metrics-port=${ports[0]}`, `--autoscaler-metrics-port=${ports[1]}`];
    const more = command === "dev" ? [...metrics, "--pool-min-workers=1"] : [];
    server = await startTidepool([`--model-repository=${models.path}`, where, ...more], command);
  }, 120_000);
  afterAll(() => server.stop());

  it("are shown by curl", async () => {
    const [bearer, header] = [`Authorization: Bearer ${key}`, `X-API-Key: ${key}`];
    const infer = `http://${server.http}/v2/models/steady/infer`;
    const body = ["-d", JSON.stringify(addingBody)];
    expect(await curl(infer, ...body, "-H", bearer)).toBe("200");
    expect(await curl(infer, ...body, "-H", header)).toBe("200");
    expect(await curl(infer, ...body)).toBe("401");
    expect(await curl(`${infer}?key=${key}`, ...body)).toBe("401");
    expect(await curl(infer, ...body, "-u", `key:${key}`)).toBe("401");
    expect(await curl(infer.replace("steady", "other"), ...body, "-H", header)).toBe("403");
    const load = `http://${server.http}/v2/repository/models/steady/load`;
    expect(await curl(load, "-X", "POST", "-H", header)).toBe("403");
    const sneaky = `http://${server.http}/v2/health/live/../../models/other`;
    expect(await curl(sneaky, "--path-as-is", "-H", header)).toBe("403");
    expect(await curl(`http://${server.http}/v2/health/live`)).toBe("200");
  }, 60_000);

  it.each(["http", "grpc"] as const)(
    "are shown by the real client over %s",
    async (transport) => {
      const url = server[transport];
      const refused =
        transport === "http"
          ? ["401", "403"]
          : ["StatusCode.UNAUTHENTICATED", "StatusCode.PERMISSION_DENIED"];
      const [stranger = "", denied = ""] = refused;
      expect(await triton(transport, url, key)).toEqual(["ok", "1.0", denied, denied, "True"]);
      const nothing = [stranger, stranger, stranger, stranger, "True"];
      expect(await triton(transport, url, "")).toEqual(nothing);
      expect(await triton(transport, url, `${key}x`)).toEqual(nothing);
    },
    60_000,
  );

  if (command === "serve") return;

  it("are asked for by the metrics of pool workers and the autoscaler", async () => {
    const where = `--api-keys=${keyFile}`;
    const reader = (await keysCommand("create", where, "--key-name=r", "--key-scope=read")).out;
    for (const url of [pool, autoscaler]) {
      await eventually(async () => {
        expect(await curl(url, "-H", `Authorization: Bearer ${reader}`)).toBe("200");
      }, 30_000);
      expect(await curl(url)).toBe("401");
      // It has scope read, for some models.
      expect(await curl(url, "-H", `Authorization: Bearer ${key}`)).toBe("403");
    }
  }, 60_000);
});
