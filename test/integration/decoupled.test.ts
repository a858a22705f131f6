import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DataPlane } from "../../gateway/data-plane.ts";
import { createGrpcServer } from "../../gateway/grpc/server.ts";
import { createHttpApp } from "../../gateway/http/app.ts";
import { listenHttp } from "../../gateway/http/server.ts";
import type { RunningVersion } from "../../serving/running-version.ts";
import { ServingEngine } from "../../serving/serving-engine.ts";
import { AnsweringInstances } from "../helpers/answering-instances.ts";
import { eventually } from "../helpers/eventually.ts";
import { collect, type Fields, GrpcClient } from "../helpers/grpc-client.ts";
import { errorOf, HttpClient } from "../helpers/http-client.ts";
import { countedVersion, decoupledModel, QueueStand } from "../helpers/queue-stand.ts";
import { startRedis } from "../helpers/redis-server.ts";
import { ModelsInMemory } from "../helpers/running-models.ts";
import { SilentLog } from "../helpers/silent-log.ts";

/** A version of the model, and what takes it away. */
interface StandVersion {
  readonly version: RunningVersion;
  readonly close: () => Promise<void>;
}

/** The ways in which a version can run. */
const shapes: readonly [string, (instances: AnsweringInstances) => Promise<StandVersion>][] = [
  [
    "in this process",
    async (instances) => {
      const version = countedVersion(decoupledModel, instances);
      return { version, close: () => version.close() };
    },
  ],
  [
    "behind a queue",
    async (instances) => {
      const redis = await startRedis();
      const stand = await QueueStand.open(redis.url);
      await stand.poolWorker({ instances });
      const version = await stand.serve(await stand.gateway(), decoupledModel);
      const close = async (): Promise<void> => {
        await stand.close();
        await redis.stop();
      };
      return { version, close };
    },
  ],
];

/** Both wires in front of a version. */
class DecoupledStand {
  readonly http: HttpClient;
  readonly grpc: GrpcClient;
  readonly close: () => Promise<void>;

  private constructor(http: HttpClient, grpc: GrpcClient, close: () => Promise<void>) {
    this.http = http;
    this.grpc = grpc;
    this.close = close;
  }

  static async start({ version, close }: StandVersion): Promise<DecoupledStand> {
    const engine = new ServingEngine(new ModelsInMemory(version), { strictReadiness: true });
    const plane = new DataPlane(engine, { name: "tidepool", version: "1", extensions: [] });
    const log = new SilentLog();
    const options = { log, logSettings: log, maxInputBytes: 2 ** 20 };
    const address = { host: "127.0.0.1", port: 0 };
    const httpServer = await listenHttp(createHttpApp(plane, options), address);
    const grpcServer = createGrpcServer(plane, options);
    const grpcPort = await grpcServer.listen(address);
    const http = new HttpClient(`127.0.0.1:${httpServer.port}`);
    const grpc = new GrpcClient(`127.0.0.1:${grpcPort}`);
    return new DecoupledStand(http, grpc, async () => {
      http.close();
      grpc.close();
      const soon = AbortSignal.timeout(2000);
      await Promise.all([httpServer.close(soon), grpcServer.close(soon)]);
      await close();
    });
  }
}

const emptyFinal = { triton_enable_empty_final_response: { boolParam: true } };

function request(times: number, more: Fields = {}): Fields {
  return {
    modelName: decoupledModel,
    id: `${times} times`,
    inputs: [{ name: "IN", datatype: "FP32", shape: [1], contents: { fp32Contents: [times] } }],
    ...more,
  };
}

/** Id, number and final flag of each answer; the text of an error. */
function summary(responses: readonly Fields[]): unknown[] {
  return responses.map(({ errorMessage, inferResponse }) => {
    if (errorMessage !== undefined) return errorMessage;
    const { id, parameters, rawOutputContents = [] } = inferResponse;
    const [bytes] = rawOutputContents;
    return [id, bytes ? bytes.readFloatLE() : "empty", parameters.triton_final_response.boolParam];
  });
}

/** The answers 1 to `times` as {@link summary} shows them. */
function answers(times: number, last = false): unknown[] {
  return Array.from({ length: times }, (_, i) => [
    `${times} times`,
    i + 1,
    last && i + 1 === times,
  ]);
}

function eventsOf(text: string): unknown[] {
  return (text.match(/(?<=^data: ).*$/gmu) ?? []).map((event) => JSON.parse(event));
}

describe.each(shapes)("a model that answers 0, 1 or 5 times, %s", (_title, start) => {
  let instances: AnsweringInstances;
  let stand: DecoupledStand;
  beforeAll(async () => {
    instances = new AnsweringInstances();
    stand = await DecoupledStand.start(await start(instances));
  });
  afterAll(() => stand.close());

  async function stream(...requests: readonly Fields[]): Promise<unknown[]> {
    const duplex = stand.grpc.stream();
    for (const one of requests) duplex.write(one);
    duplex.end();
    return summary(await collect(duplex));
  }

  function generate(times: number, way = "generate_stream") {
    return stand.http.post(`/v2/models/${decoupledModel}/${way}`, { IN: times });
  }

  it.each([0, 1, 5])("streams %d answers over gRPC", async (times) => {
    expect(await stream(request(times))).toEqual(answers(times));
  });

  it.each([0, 1, 5])("tells of the end of %d answers to who asks for that", async (times) => {
    expect(await stream(request(times, { parameters: emptyFinal }))).toEqual([
      ...answers(times),
      [`${times} times`, "empty", true],
    ]);
  });

  it.each([1, 5])("marks the last of %d answers when the model knows it", async (times) => {
    const parameters = { ...emptyFinal, tells_end: { boolParam: true } };
    expect(await stream(request(times, { parameters }))).toEqual(answers(times, true));
  });

  it("answers several requests of a stream, each in its order", async () => {
    const seen = await stream(request(5), request(0), request(1));
    expect(seen).toHaveLength(6);
    for (const times of [5, 1]) {
      const id = `${times} times`;
      expect(seen.filter((answer) => Array.isArray(answer) && answer[0] === id)).toEqual(
        answers(times),
      );
    }
  });

  it("tells of a failure after the answers before it, and goes on", async () => {
    const seen = await stream(request(-2));
    expect(seen).toEqual([["-2 times", 1, false], ["-2 times", 2, false], "failed as asked"]);
    expect(await stream(request(1))).toEqual(answers(1));
  });

  it.each([0, 1, 5])("streams %d answers as events over HTTP", async (times) => {
    const { status: code, text } = await generate(times);
    expect(code).toBe(200);
    expect(eventsOf(text)).toMatchObject(Array.from({ length: times }, (_, i) => ({ OUT: i + 1 })));
  });

  it("tells of a failure in an event", async () => {
    const { text } = await generate(-1);
    expect(eventsOf(text)).toMatchObject([{ OUT: 1 }, { error: "failed as asked" }]);
  });

  it("answers generate where there is exactly one answer", async () => {
    expect(JSON.parse((await generate(1, "generate")).text)).toMatchObject({ OUT: 1 });
    for (const times of [0, 5]) {
      const answer = await generate(times, "generate");
      expect([answer.status, errorOf(answer)]).toEqual([
        500,
        "generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses",
      ]);
    }
  });

  it("is refused where there is room for one answer only", async () => {
    const input = { name: "IN", datatype: "FP32", shape: [1], data: [1] };
    const answer = await stand.http.infer(decoupledModel, { inputs: [input] });
    expect([answer.status, errorOf(answer)]).toEqual([
      501,
      "HTTP end point doesn't support models with decoupled transaction policy",
    ]);
    await expect(stand.grpc.infer(request(1))).rejects.toMatchObject({
      code: status.UNIMPLEMENTED,
      details: "ModelInfer RPC doesn't support models with decoupled transaction policy",
    });
  });

  it("is told when nobody listens to its answers any more", async () => {
    const id = "endless";
    const duplex = stand.grpc.stream();
    duplex.on("error", () => {});
    duplex.write(request(1e9, { id }));
    await new Promise((resolve) => duplex.once("data", resolve));
    duplex.cancel();
    await eventually(() => expect(instances.cancelled).toContain(id));
  });
});
