import { describe, expect, it, onTestFinished } from "vitest";
import { names } from "../../queue/names.ts";
import { connect } from "../../redis/connection.ts";
import { deploy, type Deployment, type DeploymentOptions } from "../helpers/deployment.ts";
import { eventually } from "../helpers/eventually.ts";
import { collect, type Fields } from "../helpers/grpc-client.ts";
import { errorOf } from "../helpers/http-client.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { sumConfig, sumModel } from "../helpers/sequence-models.ts";
import { type SeenSum, SteadySequences, sumBody } from "../helpers/steady-sequences.ts";

const startError =
  /^inference request for sequence \d+ to model 'sum' must specify the START flag on the first request of the sequence$/u;

async function deployed(options: Partial<DeploymentOptions>): Promise<Deployment> {
  const models = new ModelDirectory();
  models.model("sum", { 1: sumModel() }, sumConfig("oldest { max_candidate_sequences: 128 }"));
  const deployment = await deploy({ models: models.path, ...options });
  onTestFinished(async () => {
    await deployment.stop();
    models.remove();
  });
  return deployment;
}

function clientsOf({ gateways }: Deployment, clients: number, requests: number): SteadySequences {
  const https = gateways.map(({ http }) => http);
  return new SteadySequences(https, "sum", { clients, requests });
}

/** Open sequences of each pool worker, as they say themselves. */
async function sequencesOf({ redis }: Deployment): Promise<readonly number[]> {
  const commands = await connect(redis.url, "commands");
  const words = Object.values(await commands.hgetall(names.poolWorkers("default")));
  commands.disconnect();
  return words.map((text): number => JSON.parse(text).sequences);
}

function wrong(seen: readonly SeenSum[]): readonly SeenSum[] {
  return seen.filter(({ status, got, sum }) => status === 200 && got !== sum);
}

function refused(seen: readonly SeenSum[]): readonly SeenSum[] {
  return seen.filter(({ status }) => status !== 200);
}

describe("sequences behind a queue", () => {
  it("keep their states, through two gateways and spread over all pool workers", async () => {
    const deployment = await deployed({ gateways: 2, poolWorkers: 3 });
    const clients = clientsOf(deployment, 200, 8);
    await eventually(async () => {
      const open = await sequencesOf(deployment);
      expect(open).toHaveLength(3);
      expect(Math.min(...open)).toBeGreaterThan(30);
    }, 30_000);
    await eventually(() => expect(clients.seen.length).toBeGreaterThan(4000), 60_000);
    const seen = await clients.stop();
    expect(wrong(seen)).toEqual([]);
    expect(refused(seen)).toEqual([]);
    await eventually(async () => expect(await sequencesOf(deployment)).toEqual([0, 0, 0]));
  }, 120_000);

  it("begin anew when their pool worker is killed, and never go on from a wrong state", async () => {
    const deployment = await deployed({ gateways: 2, poolWorkers: 3 });
    const clients = clientsOf(deployment, 60, 40);
    await eventually(() => expect(clients.seen.length).toBeGreaterThan(600), 30_000);
    await deployment.poolWorkers[0]?.kill();
    await eventually(() => expect(refused(clients.seen).length).toBeGreaterThan(10), 30_000);
    const before = clients.seen.length;
    await eventually(() => expect(clients.seen.length).toBeGreaterThan(before + 600), 30_000);
    const seen = await clients.stop();
    expect(wrong(seen)).toEqual([]);
    const errors = refused(seen);
    for (const { got } of errors) expect(got).toMatch(startError);
    expect(errors.filter(({ start }) => start)).toEqual([]);
    // About a third had their state there; each is told once.
    expect(errors.length).toBeLessThan(40);
    expect(Math.max(...seen.map(({ milliseconds }) => milliseconds))).toBeLessThan(15_000);
  }, 120_000);

  it("come to their ends on a pool worker that is asked to end", async () => {
    const deployment = await deployed({ gateways: 2, poolWorkers: 2 });
    const clients = clientsOf(deployment, 20, 10);
    await eventually(() => expect(clients.seen.length).toBeGreaterThan(200), 30_000);
    const stopping = deployment.poolWorkers[0]?.stop();
    const before = clients.seen.length;
    await eventually(() => expect(clients.seen.length).toBeGreaterThan(before + 400), 30_000);
    await stopping;
    const seen = await clients.stop();
    expect(wrong(seen)).toEqual([]);
    expect(refused(seen)).toEqual([]);
  }, 120_000);

  it("end with a pool worker that may wait for them no longer", async () => {
    const deployment = await deployed({ poolWorkers: 1, flags: ["--exit-timeout-secs=2"] });
    const { http } = deployment;
    const open = await http.infer("sum", sumBody(1, { sequence_id: 7, sequence_start: true }));
    expect(open.status).toBe(200);
    await deployment.poolWorkers[0]?.stop();
    await deployment.addPoolWorker();
    const late = await http.infer("sum", sumBody(1, { sequence_id: 7 }));
    expect(errorOf(late)).toMatch(startError);
    const again = await http.infer("sum", sumBody(5, { sequence_id: 7, sequence_start: true }));
    expect(JSON.parse(again.text).outputs[0].data).toEqual([5]);
  }, 60_000);

  it("keep the order of requests that are sent without waiting, over one gRPC stream", async () => {
    const { gateways } = await deployed({ poolWorkers: 3 });
    const stream = gateways[0]?.grpc.stream();
    if (!stream) throw new Error("no gateway");
    const answers = collect(stream);
    const ids = [1, 2, 3, 4, 5, 6];
    const values = Array.from({ length: 50 }, (_, i) => i + 1);
    for (const value of values) for (const id of ids) stream.write(streamed(id, value, values));
    stream.end();
    const seen = new Map<string, number[]>(ids.map((id) => [String(id), []]));
    for (const { inferResponse, errorMessage } of await answers) {
      expect(errorMessage).toBeUndefined();
      seen.get(inferResponse.id)?.push(inferResponse.rawOutputContents[0].readFloatLE(0));
    }
    const sums = values.map((value) => (value * (value + 1)) / 2);
    for (const id of ids) expect(seen.get(String(id))).toEqual(sums.map((sum) => sum * id));
  }, 60_000);
});

function streamed(id: number, value: number, values: readonly number[]): Fields {
  const last = values.length;
  return {
    modelName: "sum",
    id: String(id),
    inputs: [
      { name: "IN", datatype: "FP32", shape: [1, 1], contents: { fp32Contents: [id * value] } },
    ],
    outputs: [{ name: "OUT" }],
    parameters: {
      sequence_id: { int64Param: id },
      sequence_start: { boolParam: value === 1 },
      sequence_end: { boolParam: value === last },
    },
  };
}
