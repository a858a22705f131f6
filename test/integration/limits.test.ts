import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { python } from "../conformance/python.ts";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { deploy, type DeployedGateway, type Deployment } from "../helpers/deployment.ts";
import { eventually } from "../helpers/eventually.ts";
import { type Answer, type HttpClient } from "../helpers/http-client.ts";
import { keysCommand } from "../helpers/keys-command.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { scrape } from "../helpers/scrape.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";

const run = promisify(execFile);
const models = new ModelDirectory();
models.model("steady", { 1: addingModel(1) });
const folder = mkdtempSync(path.join(tmpdir(), "tidepool-limits-"));
afterAll(() => {
  models.remove();
  rmSync(folder, { recursive: true });
});

/** The real client, and gRPC without it: what is refused, and when to come again, read from the bytes. */
const client = `
import sys, grpc
import tritonclient.grpc as triton
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException
import numpy

url, key = sys.argv[1:]
value = triton.InferInput("x", [1], "FP32")
value.set_data_from_numpy(numpy.zeros([1], dtype=numpy.float32))
headers = {"x-api-key": key}
def infer():
    return triton.InferenceServerClient(url).infer("steady", [value], headers=headers)
print(infer().as_numpy("y")[0])
try:
    infer()
except InferenceServerException as error:
    print(error.status(), error.message())

def fields(data):
    at = 0
    def varint():
        nonlocal at
        shift = value = 0
        while True:
            byte = data[at]; at += 1
            value |= (byte & 127) << shift; shift += 7
            if byte < 128: return value
    found = {}
    while at < len(data):
        tag = varint()
        number = varint()
        if tag & 7 == 2:
            found[tag >> 3] = data[at:at + number]; at += number
        else:
            found[tag >> 3] = number
    return found

request = service_pb2.ModelInferRequest(model_name="steady")
request.inputs.add(name="x", datatype="FP32", shape=[1])
request.raw_input_contents.append(bytes(4))
stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(url))
try:
    stub.ModelInfer(request, metadata=[("x-api-key", key)])
except grpc.RpcError as error:
    trailers = dict(error.trailing_metadata())
    status = fields(trailers["grpc-status-details-bin"])
    detail = fields(status[3])
    delay = fields(fields(detail[2])[1])
    print(error.code().name, status[1] == error.code().value[0], status[2].decode() == error.details())
    print(detail[1].decode(), delay[1] == int(trailers["retry-after"]), 0 < delay[1] <= 86400)
`;

async function createKey(where: readonly string[], ...flags: string[]): Promise<string> {
  return (await keysCommand("create", ...where, "--key-name=ci", ...flags)).out;
}

function infer(http: HttpClient | undefined, key: string): Promise<Answer> {
  if (!http) throw new Error("no gateway");
  return http.infer("steady", addingBody, { "X-API-Key": key });
}

/** Waits until the server knows a key, without asking for work. */
async function known(http: HttpClient, key: string): Promise<void> {
  await eventually(async () => {
    const { status } = await http.ask("GET", "/v2", undefined, { "X-API-Key": key });
    expect(status).toBe(200);
  });
}

function counted(statuses: readonly number[], status: number): number {
  return statuses.filter((one) => one === status).length;
}

/** How many were refused by a day's items. */
function countOf({ metrics }: DeployedGateway): Promise<number> {
  // Not read while the connection to Redis comes back.
  return eventually(async () => {
    const series = await scrape(metrics);
    expect(series.get("tidepool_requests_in_flight")).toBe(0);
    expect(series.get("tidepool_request_bytes_in_flight")).toBe(0);
    const name = 'tidepool_requests_refused_total{reason="key-daily-items",tenant="default"}';
    return series.get(name) ?? 0;
  });
}

describe("limits of serve", () => {
  const where = [`--api-keys=${path.join(folder, "keys.json")}`];
  let server: TidepoolProcess;
  beforeAll(async () => {
    await createKey(where);
    writeFileSync(
      path.join(folder, "limits.yaml"),
      "tenants: [{ name: red, daily-items: 1, in-flight: 9 }]",
    );
    const limits = `--limits=${path.join(folder, "limits.yaml")}`;
    server = await startTidepool([`--model-repository=${models.path}`, ...where, limits]);
  }, 60_000);
  afterAll(() => server.stop());

  it("are told to curl in standard headers", async () => {
    const key = await createKey(where, "--key-tenant=red");
    const body = JSON.stringify(addingBody);
    const url = `http://${server.http}/v2/models/steady/infer`;
    const curl = async (): Promise<string> =>
      (await run("curl", ["-si", url, "-H", `Authorization: Bearer ${key}`, "-d", body])).stdout;
    const first = await eventually(async () => {
      const answer = await curl();
      expect(answer).toContain("HTTP/1.1 200 OK");
      return answer;
    });
    expect(first).toContain(
      'RateLimit-Policy: "tenant-in-flight";q=9;qu="concurrent-requests", "tenant-daily-items";q=1;qu="items";w=86400\r\n',
    );
    expect(first).toMatch(/RateLimit: "tenant-in-flight";r=8, "tenant-daily-items";r=0;t=\d+\r\n/u);
    const second = await curl();
    expect(second).toContain("HTTP/1.1 429 Too Many Requests");
    expect(second).toMatch(/Retry-After: \d+\r\n/u);
    expect(second).toContain(
      `{"error":"items a day of tenant 'red': given one more, expected at most 1"}`,
    );
    const { metrics } = server;
    const asked = await fetch(`http://${metrics}/metrics`, { headers: { "X-API-Key": key } });
    expect(await asked.text()).toContain(
      'tidepool_requests_refused_total{reason="tenant-daily-items",tenant="red"} 1',
    );
  }, 30_000);

  it("are told to tritonclient, and to gRPC in the details of the status", async () => {
    const key = await createKey(where, "--daily-items=1");
    const [host = "", port = ""] = server.http.split(":");
    await eventually(async () => {
      const headers = { "X-API-Key": key };
      expect((await fetch(`http://${host}:${port}/v2`, { headers })).status).toBe(200);
    });
    const { stdout } = await run(python, ["-c", client, server.grpc, key]);
    expect(stdout.trim().split("\n")).toEqual([
      "1.0",
      "StatusCode.RESOURCE_EXHAUSTED items a day of key 'ci': given one more, expected at most 1",
      "RESOURCE_EXHAUSTED True True",
      "type.googleapis.com/google.rpc.RetryInfo True True",
    ]);
  }, 60_000);

  it("come with the key, and change with it", async () => {
    const key = await createKey(where, "--in-flight=3", "--requests-per-second=70");
    const id = key.slice(3, 15);
    expect((await keysCommand("list", ...where)).out).toContain(
      "requests-per-second=70,in-flight=3",
    );
    const { told } = await keysCommand("limit", id, ...where, "--daily-items=5");
    expect(told).toBe(`key ${id} (ci) has these limits: daily-items=5`);
    expect((await keysCommand("list", ...where)).out).toContain("daily-items=5");
    expect((await keysCommand("limit", id, ...where)).told).toContain("limits: none");
    await expect(keysCommand("limit", ...where)).rejects.toThrow("keys limit: given no id");
  }, 30_000);
});

describe("limits of two gateways", () => {
  let deployment: Deployment;
  let where: readonly string[];
  let all: readonly HttpClient[];
  beforeAll(async () => {
    deployment = await deploy({
      models: models.path,
      gateways: 2,
      flags: ["--api-keys=redis", "--metrics-anonymous"],
      redis: { appendOnly: true },
    });
    where = ["--api-keys=redis", `--redis-url=${deployment.redis.url}`];
    all = deployment.gateways.map(({ http }) => http);
  }, 120_000);
  afterAll(() => deployment.stop());

  async function newKey(...flags: string[]): Promise<string> {
    const key = await createKey(where, ...flags);
    for (const http of all) await known(http, key);
    return key;
  }

  /** Sends so many at once to each gateway by turns; gives the statuses. @param tell hears each as it comes */
  async function flood(
    key: string,
    count: number,
    tell: (status: number) => void = () => {},
  ): Promise<readonly number[]> {
    const calls = Array.from({ length: count }, async (_, at) => {
      const { status } = await infer(all[at % all.length], key);
      tell(status);
      return status;
    });
    return Promise.all(calls);
  }

  it("let through a day's items once, not once for each", async () => {
    const key = await newKey("--daily-items=25");
    const statuses = await flood(key, 60);
    expect([counted(statuses, 200), counted(statuses, 429)]).toEqual([25, 35]);
  }, 60_000);

  it("let through no more in a second than the limit, beyond two windows in one", async () => {
    const key = await newKey("--requests-per-second=20");
    const times: number[] = [];
    const began = performance.now();
    while (performance.now() - began < 3000) {
      const at = performance.now();
      const statuses = await flood(key, 20);
      for (let i = 0; i < counted(statuses, 200); i++) times.push(at);
    }
    for (const at of times)
      expect(times.filter((one) => one >= at && one < at + 1000).length).toBeLessThanOrEqual(40);
    expect(times.length).toBeGreaterThanOrEqual(20);
    expect(times.length).toBeLessThanOrEqual(20 * 5);
  }, 60_000);

  it("have no more under way than the limit", async () => {
    const key = await newKey("--in-flight=6");
    const [worker] = deployment.poolWorkers;
    // Nothing that is under way ends before all have been sent.
    worker?.process.kill("SIGSTOP");
    const seen: number[] = [];
    const flooding = flood(key, 30, (status) => seen.push(status));
    try {
      await eventually(() => expect(counted(seen, 429)).toBe(24));
    } finally {
      worker?.process.kill("SIGCONT");
    }
    expect(counted(await flooding, 200)).toBe(6);
  }, 60_000);

  it("answer who comes one by one, now here and now there", async () => {
    const key = await newKey("--in-flight=1");
    for (let i = 0; i < 20; i++) {
      // On a busy machine the other gateway may take its time to let go of what it has.
      await eventually(async () => expect((await infer(all[i % 2], key)).status).toBe(200));
    }
  }, 60_000);

  it("hold again after Redis was restarted", async () => {
    const key = await newKey("--daily-items=10");
    expect(counted(await flood(key, 4), 200)).toBe(4);
    await deployment.redis.kill();
    await deployment.redis.restart();
    await eventually(async () => {
      for (const http of all) {
        const { status } = await http.ask("GET", "/v2", undefined, { "X-API-Key": key });
        expect(status).toBe(200);
      }
    }, 30_000);
    // What was spent is on disk.
    const statuses = await eventually(async () => {
      const some = await flood(key, 20);
      expect(counted(some, 200) + counted(some, 429)).toBe(20);
      return some;
    }, 30_000);
    expect(counted(statuses, 200)).toBeLessThanOrEqual(6);
    expect(counted(await flood(key, 4), 429)).toBe(4);
  }, 90_000);

  it("count what they refuse", async () => {
    const sums = await Promise.all(deployment.gateways.map(countOf));
    expect(sums.reduce((sum, one) => sum + one, 0)).toBeGreaterThanOrEqual(35);
  });
});
